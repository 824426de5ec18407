"""English prose for the demo: the King James Bible from Debian's bible-kjv packages, without its verse numbers."""
import os
import re
import subprocess
import tempfile

VERSE_NUMBER = re.compile(rb"^[0-9]?[A-Za-z]+[0-9]+:[0-9]+ ", re.MULTILINE)
WHOLE_BOOK = "gen1:1-rev22:21"
LEAST_BYTES = 4_000_000


def print_text():
    """All verses, a line each, with their numbers. The packages hold them compressed, and their program `bible` prints them."""
    try:
        return subprocess.run(["bible", "-f", WHOLE_BOOK], stdin=subprocess.DEVNULL, capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise SystemExit(f"demo: cannot extract the text with Debian's program `bible` ({error}); mend: ./run setup") from error


def extract_text(cache_folder):
    """Path of the text; extracted once."""
    path = os.path.join(cache_folder, "kjv.txt")
    if os.path.exists(path):
        return path
    text = VERSE_NUMBER.sub(b"", print_text())
    if len(text) < LEAST_BYTES:
        raise SystemExit(f"demo: `bible` printed only {len(text)} bytes; reinstall the packages bible-kjv and bible-kjv-text")
    os.makedirs(cache_folder, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=cache_folder, delete=False) as file:
        file.write(text)
    os.chmod(file.name, 0o644)
    os.rename(file.name, path)  # two demos at once write the same text
    return path
