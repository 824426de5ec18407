#!/usr/bin/env python3
"""What the tarball bundles, as SPDX 2.3 in JSON: each file of lib/ with its package, version, license and digests.

    bundled.py FOLDER --wheels lib/motley=WHEELS --version VERSION --time SECONDS    # writes FOLDER/share/doc/motley/bundled.spdx.json

Libraries of the distribution are looked up in dpkg's database, libtorch's in the wheels' own records. A file of neither is an
error: nothing is bundled of which it is not known where it comes from.
"""
import argparse
import csv
import datetime
import email
import filecmp
import glob
import hashlib
import json
import os
import re
import subprocess
import sys

LOADED = ("lib",)   # folders whose files are others' work
TEXT = "share/motley/demo/kjv.txt"   # the demo's, made of this package's
TEXT_PACKAGE = "bible-kjv-text"


class Package:
    """A package of files: where it comes from, and what it says of its license."""

    def __init__(self, name, version, supplier, source, license_text, license_names):
        self.name, self.version, self.supplier, self.source = name, version, supplier, source
        self.license_text, self.license_names = license_text, license_names

    @property
    def key(self):
        return re.sub(r"[^A-Za-z0-9.-]", "-", f"{self.name}-{self.version}")   # each rank has a torch

    def to_spdx(self):
        return {"SPDXID": f"SPDXRef-Package-{self.key}", "name": self.name, "versionInfo": self.version,
                "supplier": self.supplier, "downloadLocation": "NOASSERTION", "sourceInfo": self.source, "filesAnalyzed": False,
                "licenseConcluded": "NOASSERTION", "licenseDeclared": f"LicenseRef-{self.key}", "copyrightText": "NOASSERTION",
                "licenseComments": "named there: " + (", ".join(self.license_names) or "nothing by a short name")}

    def license_info(self):
        return {"licenseId": f"LicenseRef-{self.key}", "name": f"what {self.name} says of its license", "extractedText": self.license_text}


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def debian_package(path):
    """That owns the file of this name and content."""
    found = subprocess.run(["dpkg-query", "-S", f"*/{os.path.basename(path)}"], capture_output=True, text=True, check=False).stdout
    for line in found.splitlines():
        owners, _, theirs = line.partition(": ")
        if not line.startswith("diversion ") and os.path.exists(theirs) and filecmp.cmp(theirs, path, shallow=False):
            return described(owners.split(", ")[0])
    return None


def described(package):
    name, version, source, source_version = output(
        "dpkg-query", "-W", "-f", "${Package}\t${Version}\t${source:Package}\t${source:Version}", package).split("\t")
    text = read(f"/usr/share/doc/{name}/copyright")
    names = sorted({match.strip() for match in re.findall(r"^License: *(\S[^\n]*)$", text, re.MULTILINE)})
    return Package(name, version, "Organization: Debian", f"Debian source package {source} {source_version}", text, names)


def wheels_of(folder):
    """{path below the folder of wheels: its wheel}"""
    owners = {}
    for record in glob.glob(os.path.join(folder, "*.dist-info", "RECORD")):
        about = os.path.dirname(record)
        metadata = email.message_from_string(read(os.path.join(about, "METADATA")))
        texts = [read(path) for path in sorted(glob.glob(os.path.join(about, "**", "*"), recursive=True))
                 if os.path.isfile(path) and re.match(r"(?i)licen[cs]e|notice", os.path.basename(path))]
        license_name = metadata.get("License-Expression") or metadata.get("License") or ""
        wheel = Package(metadata["Name"], metadata["Version"], f"Organization: {metadata.get('Author') or 'NOASSERTION'}",
                        f"wheel {metadata['Name']}=={metadata['Version']} of PyPI", "\n".join(texts) or license_name or "none found",
                        [license_name.splitlines()[0]] if license_name else [])
        with open(record, encoding="utf-8", newline="") as file:
            owners.update({row[0]: wheel for row in csv.reader(file)})
    return owners


def digest(path, kind):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, kind).hexdigest()


def files_of(folder):
    for top in LOADED:
        for parent, _, names in os.walk(os.path.join(folder, top)):
            yield from (os.path.relpath(os.path.join(parent, name), folder) for name in names)
    yield TEXT


def owner_of(folder, name, wheels):
    """`wheels`: {folder into which wheels were unpacked: what wheels_of says of them}"""
    if name == TEXT:
        return described(TEXT_PACKAGE)
    for place, owners in wheels.items():
        if name.startswith(place + "/"):
            return owners.get(os.path.relpath(name, place))
    return debian_package(os.path.join(folder, name))


def document(arguments):
    packages, files, relations = {}, [], []
    wheels = {place: wheels_of(source) for place, source in (each.split("=", 1) for each in arguments.wheels)}
    for name in sorted(files_of(arguments.folder)):
        owner = owner_of(arguments.folder, name, wheels)
        if owner is None:
            sys.exit(f"bundled.py: {name}: of no Debian package and no wheel; what is not known is not bundled")
        packages[owner.key] = owner
        path, identifier = os.path.join(arguments.folder, name), f"SPDXRef-File-{len(files)}"
        files.append({"SPDXID": identifier, "fileName": f"./{name}", "licenseConcluded": "NOASSERTION", "copyrightText": "NOASSERTION",
                      "checksums": [{"algorithm": kind.upper(), "checksumValue": digest(path, kind)} for kind in ("sha1", "sha256")]})
        relations.append({"spdxElementId": f"SPDXRef-Package-{owner.key}", "relationshipType": "CONTAINS",
                          "relatedSpdxElement": identifier})
    motley = {"SPDXID": "SPDXRef-Package-motley", "name": "motley", "versionInfo": arguments.version, "downloadLocation": "NOASSERTION",
              "filesAnalyzed": False, "licenseConcluded": "Apache-2.0", "licenseDeclared": "Apache-2.0", "copyrightText": "NOASSERTION"}
    listed = [packages[name] for name in sorted(packages)]
    relations += [{"spdxElementId": "SPDXRef-Package-motley", "relationshipType": "DEPENDS_ON",
                   "relatedSpdxElement": f"SPDXRef-Package-{package.key}"} for package in listed]
    content = hashlib.sha256(json.dumps(files).encode()).hexdigest()
    created = datetime.datetime.fromtimestamp(arguments.time, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"motley-{arguments.version}",
            "documentNamespace": f"urn:motley:{arguments.version}:{content}",
            "creationInfo": {"created": created, "creators": ["Tool: motley-bundled"]},
            "documentDescribes": ["SPDXRef-Package-motley"], "packages": [motley, *(package.to_spdx() for package in listed)],
            "files": files, "hasExtractedLicensingInfos": [package.license_info() for package in listed], "relationships": relations}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--wheels", action="append", required=True, metavar="PLACE=FOLDER",
                        help="where in FOLDER wheels lie, and the folder into which they were unpacked")
    parser.add_argument("--version", required=True)
    parser.add_argument("--time", type=int, required=True, help="when this was made, in seconds since 1970")
    arguments = parser.parse_args()
    with open(os.path.join(arguments.folder, "share", "doc", "motley", "bundled.spdx.json"), "w", encoding="utf-8") as file:
        json.dump(document(arguments), file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
