"""`python3 FOLDER prepare ...`: what the command `motley data` starts. docs/use/data-command.md"""
import sys

if sys.version_info < (3, 9):
    sys.stderr.write("motley: %s is Python %d.%d; motley data needs 3.9 or newer: --python PYTHON\n" % ((sys.executable,) + sys.version_info[:2]))
    sys.exit(69)

from motley_data.command import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
