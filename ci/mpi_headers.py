#!/usr/bin/env python3
"""Compares the constants of crates/hbpca-mpi/src/table.rs with the headers of the libraries that are installed under the given prefixes."""

import re
import sys
from pathlib import Path

TABLE = Path(__file__).resolve().parent.parent / "crates/hbpca-mpi/src/table.rs"
NAMES = {
    "world": "MPI_COMM_WORLD",
    "double": "MPI_DOUBLE",
    "errors_return": "MPI_ERRORS_RETURN",
    "status_ignore": "MPI_STATUS_IGNORE",
    "serialized": "MPI_THREAD_SERIALIZED",
}


def ours(function: str) -> dict[str, int | str]:
    """The constants of one binary interface, as the table has them."""
    body = re.search(rf"fn {function}\(library: Library\).*?\n}}\n", TABLE.read_text(), re.DOTALL)[0]
    found = {}
    for name in NAMES:
        value = re.search(rf"\b{name}: (?:Address::of\()?(?:symbol\(&library, \"(\w+)\"\)|(0x[0-9a-f_]+|\d+))", body)
        found[name] = value[1] or int(value[2].replace("_", ""), 0)
    return found


def theirs(header: Path) -> dict[str, int | str]:
    """The same, as a header has them: a number, or the symbol whose address it is."""
    text = header.read_text()
    found = {}
    for name, constant in NAMES.items():
        defined = re.search(rf"#define\s+{constant}\s+(.*)", text)
        if defined and (symbol := re.search(r"OMPI_PREDEFINED_GLOBAL\(.*?,\s*(\w+)\)", defined[1])):
            found[name] = symbol[1]
        elif defined and (number := re.search(r"(0x[0-9a-fA-F]+|\d+)\)?\s*(?:/\*.*)?$", defined[1].replace("> (0))", "> 0"))):
            found[name] = int(number[1], 0)
        else:
            # An enumeration, with or without numbers.
            members = re.search(rf"\{{([^{{}}]*\b{constant}\b[^{{}}]*)\}}", text)[1]
            members = re.sub(r"/\*.*?\*/", "", members, flags=re.DOTALL).split(",")
            for at, member in enumerate(members):
                if constant in member:
                    found[name] = int(member.split("=")[1], 0) if "=" in member else at
    return found


def main() -> None:
    """Exits with 1 where one differs."""
    compared = 0
    for prefix in map(Path, sys.argv[1:]):
        for header, function in [("mpi.h", "mpich"), ("mpi.h", "open_mpi"), ("mpi_abi.h", "standard")]:
            path = prefix / "include" / header
            if not path.exists() or (header == "mpi.h") and ("ompi_mpi_comm_world" in path.read_text()) != (function == "open_mpi"):
                continue
            want, got = theirs(path), ours(function)
            if want != got:
                sys.exit(f"{path}: {want}, but the table has {got}")
            compared += 1
    print(f"{compared} headers agree with the table")
    if compared < 3:
        sys.exit("a header is missing")


main()
