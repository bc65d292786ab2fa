"""Write archives again with one date, one owner, one order and the same permissions, so that the same commit gives the same bytes.

SOURCE_DATE_EPOCH=SECONDS python .ci/repack.py ARCHIVE...
"""

import gzip
import io
import os
import sys
import tarfile
import zipfile
from pathlib import Path


def repacked(content: bytes, date: int) -> bytes:
    """A source archive with its members sorted and without what differs from build to build."""
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


def repacked_wheel(content: bytes) -> bytes:
    """A wheel whose files anybody may read, whatever the umask of the build; dates are those of the build."""
    packed = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(content)) as old,
        zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as new,
    ):
        for member in old.infolist():
            own = zipfile.ZipInfo(member.filename, member.date_time)
            own.external_attr = 0o100644 << 16
            own.compress_type = zipfile.ZIP_DEFLATED
            new.writestr(own, old.read(member))
    return packed.getvalue()


if __name__ == "__main__":
    for archive in map(Path, sys.argv[1:]):
        content = archive.read_bytes()
        is_wheel = archive.suffix == ".whl"
        archive.write_bytes(
            repacked_wheel(content) if is_wheel else repacked(content, int(os.environ["SOURCE_DATE_EPOCH"]))
        )
