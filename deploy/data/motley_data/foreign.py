"""Sets of data as other programs keep them: refused by name, with the one command that makes lines of JSON of them."""
import json
import os
import shlex
import tarfile
import zlib

from .errors import DATA, Refused, one_line

# Each is a line of Python whose first argument is the set. What is no JSON, such as an image, becomes some text.
PRINT = "[print(json.dumps(each if isinstance(each, dict) else {'text': each}, default=str)) for each in "
MDS = f"import json, sys, streaming; {PRINT}streaming.StreamingDataset(local=sys.argv[1], batch_size=1)]"
LITDATA = f"import json, sys, litdata; {PRINT}litdata.StreamingDataset(sys.argv[1])]"
SAVED = "import sys, datasets; datasets.load_from_disk(sys.argv[1]).to_json(sys.argv[2])"
ARROW = "import sys, datasets; datasets.Dataset.from_file(sys.argv[1]).to_json(sys.argv[2])"
FEATHER = "import pandas, sys; pandas.read_feather(sys.argv[1]).to_json(sys.argv[2], orient='records', lines=True)"
TAR = f"import json, sys, tarfile; tar = tarfile.open(sys.argv[1]); {PRINT}"
TAR_TEXT = TAR + "(tar.extractfile(one).read().decode() for one in tar if one.name.endswith('.txt'))]"
TAR_JSON = TAR + "(json.load(tar.extractfile(one)) for one in tar if one.name.endswith('.json'))]"

ARROW_FILE = b"ARROW1"   # a stream, as datasets writes it, has no mark
TARS = (".tar", ".tar.gz", ".tgz")
LOOKED_AT = 64           # members of an archive
PARTS = (".mds", ".mds.zstd", ".bin", ".arrow", ".json")   # of the sets' files


def command(python, path, prints):
    """What a shell takes. `prints`: the lines; otherwise the program writes the file itself."""
    path = path.rstrip("/")
    return f'python3 -c "{python}" {shlex.quote(path)} {"> " if prints else ""}{shlex.quote(path + ".jsonl")}'


def refuse(path, what, python, package="", prints=True, of=None):
    """`of`: what of it is converted, where that is not all."""
    needs = f" (it needs the package {package})" if package else ""
    raise Refused(DATA, f"{path} is {what}; make lines of JSON of it, and give those: {command(python, of or path, prints)}{needs}")


def refuse_numbers(path, what, formats):
    raise Refused(DATA, f"{path} is {what}, of numbers and not of text ({', '.join(map(str, formats))}); give the text that they were made of")


def _index(folder, name):
    """The object in a small file of JSON, or {}."""
    try:
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            found = json.load(file)
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _list(value, key):
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, list) else []


def _refuse_mds(folder, shards):
    formats = _list(shards[0], "column_encodings")
    if formats and not any(each in ("str", "json") for each in formats):
        refuse_numbers(folder, "a folder of Mosaic's MDS", formats)
    refuse(folder, "a folder of Mosaic's MDS", MDS, "mosaicml-streaming")


def _refuse_litdata(folder, config):
    formats = _list(config, "data_format")
    if formats and "str" not in formats:
        refuse_numbers(folder, "a folder of litdata's", formats)
    refuse(folder, "a folder of litdata's", LITDATA, "litdata")


def refuse_folder(folder):
    """Goes on where the folder is none of them."""
    index = _index(folder, "index.json")
    shards = _list(index, "shards")
    if shards and _list(shards[0], "column_names"):
        _refuse_mds(folder, shards)
    if _list(index, "chunks"):
        _refuse_litdata(folder, index.get("config"))
    splits = _list(_index(folder, "dataset_dict.json"), "splits")
    if splits:
        refuse(folder, f"a folder of HuggingFace's save_to_disk with the splits {', '.join(map(str, splits))}", SAVED, "datasets", prints=False,
               of=os.path.join(folder, str(splits[0])))
    if "_data_files" in _index(folder, "state.json"):
        refuse(folder, "a folder of HuggingFace's save_to_disk", SAVED, "datasets", prints=False)


def refuse_file(path):
    """The same of a file, which may be one of those folders'."""
    name = path.lower()
    if name.endswith(TARS):
        _refuse_tar(path)
    if name.endswith(PARTS):
        refuse_folder(os.path.dirname(path) or ".")
    if name.endswith((".mds", ".mds.zstd")):
        raise Refused(DATA, f"{path} is a shard of Mosaic's MDS, and its folder has no index.json; copy that beside it, and give the folder")
    if name.endswith((".arrow", ".feather")):
        with open(path, "rb") as file:
            marked = file.read(len(ARROW_FILE)) == ARROW_FILE
        refuse(path, "a table of Arrow's", FEATHER if marked else ARROW, "pandas, with pyarrow" if marked else "datasets", prints=False)


def _key(name):
    """WebDataset's: members of one name but for the endings are one record."""
    folder, _, file = name.rpartition("/")
    return folder, file.partition(".")[0]


def _refuse_tar(path):
    try:
        with tarfile.open(path) as tar:
            names = [member.name for _, member in zip(range(LOOKED_AT), tar) if member.isfile()]
    except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
        raise Refused(DATA, f"{path} is no whole tar archive: {one_line(error)}") from error
    records = len({_key(name) for name in names}) < len(names)
    if records and any(name.endswith(".txt") for name in names):
        refuse(path, "a tar archive of WebDataset's", TAR_TEXT)
    if any(name.endswith(".json") for name in names):
        refuse(path, "a tar archive of WebDataset's" if records else "a tar archive of records", TAR_JSON)
    raise Refused(DATA, f"{path} is a tar archive; unpack it, and give its files: tar -xf {shlex.quote(path)}")
