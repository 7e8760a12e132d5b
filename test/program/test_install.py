#!/usr/bin/env python3
"""Installs into a folder of its own and builds a program against it with pkg-config: test_install.py MESON BUILD SOURCE [FLAG…]"""
import pathlib
import subprocess
import sys
import tempfile

meson, build, source, *flags = sys.argv[1:]
with tempfile.TemporaryDirectory() as folder:
    subprocess.run([meson, "install", "-C", build, "--no-rebuild", "--quiet", "--destdir", folder], check=True)
    (description,) = pathlib.Path(folder).rglob("rankine.pc")
    prefix = next(line for line in description.read_text().splitlines() if line.startswith("prefix=")).split("=", 1)[1]
    found = subprocess.run(
        ["pkg-config", f"--define-variable=prefix={folder}{prefix}", "--cflags", "--libs", str(description)],
        check=True, capture_output=True, text=True).stdout.split()
    program = f"{folder}/outside"
    subprocess.run(["c++", "-std=c++20", source, "-o", program, *found, *flags], check=True)
    output = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    assert output == "66 parameters\n", output  # 5 * 7 + 7 + 7 * 3 + 3
    assert next(pathlib.Path(folder).rglob("bin/rankine")).is_file()
print("installed, built against, ran")
