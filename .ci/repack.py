"""Write a source archive again with one date, one owner and one order, so that the same commit gives the same bytes.

SOURCE_DATE_EPOCH=SECONDS python .ci/repack.py ARCHIVE.tar.gz
"""

import gzip
import io
import os
import sys
import tarfile
from pathlib import Path


def repacked(content: bytes, date: int) -> bytes:
    """The archive with its members sorted and without what differs from build to build."""
    plain = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(content), mode="r:gz") as old,
        tarfile.open(fileobj=plain, mode="w", format=tarfile.PAX_FORMAT) as new,
    ):
        for member in sorted(old.getmembers(), key=lambda member: member.name):
            member.mtime, member.uid, member.gid, member.uname, member.gname = date, 0, 0, "", ""
            member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            member.pax_headers = {}
            new.addfile(member, old.extractfile(member) if member.isfile() else None)
    return gzip.compress(plain.getvalue(), mtime=date)


if __name__ == "__main__":
    archive = Path(sys.argv[1])
    archive.write_bytes(repacked(archive.read_bytes(), int(os.environ["SOURCE_DATE_EPOCH"])))
