#!/bin/sh
# Kernels of one instruction set must not export an inline function that another object might share: the linker
# keeps one copy, and a processor without that set would run it.
# usage: check_symbols.sh NM LIBRARY ISA
shared=$("$1" -C "$2" | grep -E ' [WVu] ' | grep -v "rankine::$3::")
if [ -n "$shared" ]; then
  echo "$2 has symbols that the linker may share:"
  echo "$shared"
  exit 1
fi
"$1" -C "$2" | grep -q " T rankine::$3::fill"
