"""A folder on a file system of its own, as a network's may behave: operations that fail, no locks, files of another
machine that are seen late. It speaks the kernel's FUSE protocol itself (linux/fuse.h) and keeps everything in another
folder, which a second mount may share.

``python fuse_folder.py BACKING MOUNTPOINT RULES LATE LOCKS`` serves until it is unmounted. RULES is a file, read at
each operation, of lines ``operation pattern error`` (``fsync */step-*/* EIO``; operations as in `_OPERATIONS`, patterns
of paths below BACKING). In place of an error, ``SIGTERM`` and other signals are sent once to the process that asks, and
``GROUP`` kills all of its group; ``release * +3600`` gives what is written the time of a server whose clock is an hour
ahead. LATE: seconds that the kernel believes what it last heard of names and files. LOCKS: 0 where no
file can be locked (ENOLCK).
"""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path

_MOST = 1 << 17
_OPERATIONS = {
    1: "lookup", 3: "getattr", 4: "setattr", 5: "readlink", 6: "symlink", 8: "mknod", 9: "mkdir", 10: "unlink",
    11: "rmdir", 12: "rename", 13: "link", 14: "open", 15: "read", 16: "write", 17: "statfs", 18: "release",
    20: "fsync", 25: "flush", 26: "init", 27: "opendir", 28: "readdir", 29: "releasedir", 30: "fsyncdir",
    31: "lock", 32: "lock", 33: "lock", 35: "create", 45: "rename2",
}  # fmt: skip
_OF_NAMES = {"symlink", "mknod", "mkdir", "unlink", "rmdir", "rename", "link", "create"}
_SILENT = (2, 36, 42)  # forget, interrupt, batch_forget


@contextmanager
def mount_folder(backing: Path, mount: Path, *, late: float = 0.0, locks: bool = True) -> Iterator[Path]:
    """Mount the folder `backing` at `mount`; gives the file of rules. Skips the test where that is not allowed."""
    backing.mkdir(parents=True, exist_ok=True)
    mount.mkdir(parents=True)
    rules = mount.with_name(f"{mount.name}.rules")
    rules.write_text("")
    command = [sys.executable, "-S", __file__, *map(str, (backing, mount, rules, late, int(locks)))]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        while not os.path.ismount(mount):
            if server.poll() is not None:
                from pytest import skip  # which the server has not

                skip(f"no FUSE here: {(server.stderr.read() if server.stderr else '').strip()[-200:]}")
            time.sleep(0.01)
        yield rules
    finally:
        rules.write_text("")
        _libc().umount2(os.fsencode(mount), 2)  # MNT_DETACH
        server.kill()
        server.wait()


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


class _Served:
    """One mounted folder: the paths of its nodes, and how each operation is done on the folder behind it."""

    def __init__(self, backing: Path, rules: Path, late: float, locks: bool) -> None:
        self.rules, self.locks = rules, locks
        self.valid = (int(late), int(late % 1 * 1e9))
        self.paths: dict[int, str] = {1: str(backing)}
        self.nodes: dict[str, int] = {str(backing): 1}
        self.backing, self.late = str(backing), late
        self.listings: dict[str, tuple[float, list[str]]] = {}
        self.signalled: set[str] = set()

    def find_rules(self, operation: str, paths: list[str]) -> Iterator[tuple[str, str]]:
        """The lines that fit an operation on paths, and what each asks for."""
        inside = [path[len(self.backing) :] for path in paths]
        for line in self.rules.read_text().splitlines():
            kind, pattern, name = line.split()
            if kind in ("any", operation) and any(fnmatch(path, pattern) for path in inside):
                self.rules.with_suffix(".met").touch()
                yield line, name

    def find_refusal(self, operation: str, paths: list[str], process: int) -> int:
        for line, name in self.find_rules(operation, paths):
            if name.startswith("E"):
                return int(getattr(errno, name))
            if name[0] in "GS" and line not in self.signalled:
                self.signalled.add(line)
                if name == "GROUP":
                    os.killpg(os.getpgid(process), signal.SIGKILL)
                    return errno.EIO
                os.kill(process, getattr(signal, name))
        return 0

    def shift_time(self, path: str) -> None:
        """What was written has the time of the server's clock."""
        for _, name in self.find_rules("release", [path]):
            if name[0] in "+-" and os.path.exists(path):
                status = os.stat(path)
                os.utime(path, ns=(status.st_atime_ns, time.time_ns() + int(name) * 10**9))

    def node(self, path: str) -> int:
        if path not in self.nodes:
            self.nodes[path] = max(self.paths) + 1
            self.paths[self.nodes[path]] = path
        return self.nodes[path]

    def attributes(self, status: os.stat_result) -> bytes:
        times = [divmod(number, 10**9) for number in (status.st_atime_ns, status.st_mtime_ns, status.st_ctime_ns)]
        return struct.pack(
            "<6Q10I", status.st_ino, status.st_size, status.st_blocks, *(seconds for seconds, _ in times),
            *(rest for _, rest in times), status.st_mode, status.st_nlink, status.st_uid, status.st_gid,
            status.st_rdev, status.st_blksize, 0,
        )  # fmt: skip

    def entry(self, path: str) -> bytes:
        status = os.lstat(path)
        seconds, rest = self.valid
        return struct.pack("<4Q2I", self.node(path), 0, seconds, seconds, rest, rest) + self.attributes(status)

    def attributes_of(self, path: str) -> bytes:
        return struct.pack("<Q2I", *self.valid, 0) + self.attributes(os.lstat(path))

    def move_nodes(self, source: str, target: str) -> None:
        """Nodes keep their numbers when their paths change; what lay at the target is gone."""
        self.forget_node(target)
        for path in [path for path in self.nodes if path == source or path.startswith(source + "/")]:
            number = self.nodes.pop(path)
            self.paths[number] = target + path[len(source) :]
            self.nodes[self.paths[number]] = number

    def forget_node(self, path: str) -> None:
        number = self.nodes.pop(path, None)
        if number is not None:
            self.paths[number] = f"{path}/gone"  # which no folder has

    def carry_out(self, code: int, node: int, body: bytes, process: int) -> bytes:
        """The answer to an operation that a process asks for.

        Raises:
            OSError: it fails, for a rule or by itself.
        """
        operation = _OPERATIONS.get(code)
        if operation is None:
            raise OSError(errno.ENOSYS, "")
        here = self.paths.get(node, "")
        offsets = {1: 0, 6: 0, 8: 16, 9: 8, 10: 0, 11: 0, 12: 8, 13: 8, 35: 16, 45: 16}
        names = [os.fsdecode(name) for name in body[offsets[code] :].split(b"\0")] if code in offsets else []
        inside = f"{here}/{names[0]}" if names else here
        target = f"{self.paths[struct.unpack_from('<Q', body)[0]]}/{names[1]}" if code in (12, 45) else ""
        if operation in _OF_NAMES:
            self.listings.clear()  # what this machine does it sees at once
        if number := self.find_refusal(operation, [inside, target] if target else [inside], process):
            raise OSError(number, "")
        match operation:
            case "init":
                major, minor, ahead, flags = struct.unpack_from("<4I", body)
                granted = flags & (1 << 5 | 1 << 3 | (0 if self.locks else 1 << 1 | 1 << 10))
                return struct.pack(
                    "<4I2H2I2H8I", major, min(minor, 31), ahead, granted, 16, 12, _MOST, 1, 32, 0, *[0] * 8
                )
            case "lookup":
                try:
                    return self.entry(inside)
                except FileNotFoundError:
                    if self.valid == (0, 0):
                        raise
                    return struct.pack("<4Q2I", 0, 0, self.valid[0], 0, self.valid[1], 0) + bytes(88)
            case "getattr":
                return self.attributes_of(here)
            case "setattr":
                self.set_attributes(here, body)
                return self.attributes_of(here)
            case "readlink":
                return os.fsencode(os.readlink(here))
            case "symlink":
                os.symlink(names[1], inside)
            case "mknod":
                os.mknod(inside, *struct.unpack_from("<2I", body))
            case "mkdir":
                os.mkdir(inside, struct.unpack_from("<I", body)[0])
            case "link":
                os.link(self.paths[struct.unpack_from("<Q", body)[0]], inside)
            case "unlink" | "rmdir":
                (os.unlink if operation == "unlink" else os.rmdir)(inside)
                self.forget_node(inside)
                return b""
            case "rename":
                os.rename(inside, target)
                self.move_nodes(inside, target)
                return b""
            case "rename2":
                raise OSError(errno.EINVAL, "")  # no exchange, as on NFS
            case "open":
                return struct.pack("<Q2I", os.open(here, struct.unpack_from("<I", body)[0] & ~os.O_NOFOLLOW), 0, 0)
            case "create":
                flags, mode = struct.unpack_from("<2I", body)
                descriptor = os.open(inside, flags, mode)
                return self.entry(inside) + struct.pack("<Q2I", descriptor, 0, 0)
            case "read":
                descriptor, offset, size = struct.unpack_from("<2QI", body)
                return os.pread(descriptor, size, offset)
            case "write":
                descriptor, offset, size = struct.unpack_from("<2QI", body)
                return struct.pack("<2I", os.pwrite(descriptor, body[40 : 40 + size], offset), 0)
            case "statfs":
                space = os.statvfs(here)
                return struct.pack(
                    "<5Q10I", space.f_blocks, space.f_bfree, space.f_bavail, space.f_files, space.f_ffree,
                    space.f_bsize, space.f_namemax, space.f_frsize, *[0] * 7,
                )  # fmt: skip
            case "release":
                descriptor, flags = struct.unpack_from("<QI", body)
                os.close(descriptor)
                if flags & (os.O_WRONLY | os.O_RDWR):
                    self.shift_time(here)
                return b""
            case "opendir":
                return struct.pack("<Q2I", 0, 0, 0)
            case "readdir":
                return self.pack_listing(here, *struct.unpack_from("<QI", body, 8))
            case "lock":
                raise OSError(errno.ENOLCK, "")
            case _:  # fsync, flush, releasedir, fsyncdir: the folder behind has it already
                return b""
        return self.entry(inside)

    def set_attributes(self, path: str, body: bytes) -> None:
        valid, _, _, size, _, atime, mtime, _, atimensec, mtimensec, _, mode, _, uid, gid, _ = struct.unpack(
            "<2I6Q8I", body[:88]
        )
        if valid & 1:
            os.chmod(path, mode & 0o7777)
        if valid & 6:
            os.chown(path, uid if valid & 2 else -1, gid if valid & 4 else -1)
        if valid & 8:
            os.truncate(path, size)
        if valid & 0x1B0:
            before, now = os.lstat(path), time.time_ns()
            rows = [
                (0x80, 0x10, atime, atimensec, before.st_atime_ns),
                (0x100, 0x20, mtime, mtimensec, before.st_mtime_ns),
            ]
            times = [
                now if valid & present else seconds * 10**9 + rest if valid & chosen else old
                for present, chosen, seconds, rest, old in rows
            ]
            os.utime(path, ns=(times[0], times[1]))

    def pack_listing(self, path: str, offset: int, size: int) -> bytes:
        answer, (listed_at, names) = b"", self.listings.get(path, (0.0, []))
        if not offset and time.monotonic() - listed_at > self.late:
            names = sorted(os.listdir(path))
            self.listings[path] = (time.monotonic(), names)
        for number, name in enumerate(names[offset:], start=offset + 1):
            raw = os.fsencode(name)
            item = struct.pack("<2Q2I", 1, number, len(raw), 0) + raw
            item += bytes(-len(item) % 8)
            if len(answer) + len(item) > size:
                break
            answer += item
        return answer


def _serve(backing: Path, mount: Path, rules: Path, late: float, locks: bool) -> None:
    device = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={device},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()}"
    if _libc().mount(b"plumbline-test", os.fsencode(mount), b"fuse", 0, options.encode()):
        sys.exit(os.strerror(ctypes.get_errno()))
    os.umask(0)
    served = _Served(backing.resolve(), rules, late, locks)
    while True:
        try:
            request = os.read(device, _MOST + 8192)
        except OSError as error:
            if error.errno == errno.ENODEV:  # unmounted
                return
            if error.errno in (errno.ENOENT, errno.EINTR):
                continue
            raise
        _, code, unique, node, _, _, process = struct.unpack_from("<2I2Q3I", request)
        if code in _SILENT:
            continue
        try:
            number, answer = 0, served.carry_out(code, node, request[40:], process)
        except OSError as error:
            number, answer = error.errno or errno.EIO, b""
        try:
            os.write(device, struct.pack("<IiQ", 16 + len(answer), -number, unique) + answer)
        except OSError as error:  # whoever asked is gone
            if error.errno != errno.ENOENT:
                raise


if __name__ == "__main__":
    _serve(*map(Path, sys.argv[1:4]), float(sys.argv[4]), bool(int(sys.argv[5])))
