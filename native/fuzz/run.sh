#!/bin/sh
# Runs each fuzz target for SECONDS (60 by default) from the corpora kept in corpus/.
# Installs cargo-fuzz if it is missing; needs the nightly toolchain and a C++ compiler.
# New inputs go to target/corpus/, failing ones to artifacts/.
set -eu

seconds=${1:-60}
cargo_fuzz_version=0.13.1
cd "$(dirname "$0")"

case $seconds in
'' | *[!0-9]*)
    echo "run.sh: SECONDS must be a whole number, not '$seconds'" >&2
    exit 2
    ;;
esac
if ! cargo +nightly --version >/dev/null 2>&1; then
    echo "run.sh: needs the nightly toolchain: rustup toolchain install nightly" >&2
    exit 3
fi
if ! cargo fuzz --version >/dev/null 2>&1; then
    cargo install cargo-fuzz --locked --version "$cargo_fuzz_version"
fi

for target in headers envelope websocket config minted; do
    echo "fuzz: $target, ${seconds} s"
    mkdir -p "target/corpus/$target"
    cargo +nightly fuzz run --fuzz-dir . "$target" "target/corpus/$target" "corpus/$target" -- \
        -max_total_time="$seconds" -max_len=2048 -timeout=5 -rss_limit_mb=1024 -verbosity=0 \
        -print_final_stats=1
done
