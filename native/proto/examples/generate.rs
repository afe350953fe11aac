//! Makes `src/gen` from `proto/belay/v1`, without protoc. `--check` changes nothing and fails when
//! it is stale.

use std::path::Path;
use std::process::ExitCode;
use std::{env, fs};

const FILES: [&str; 4] = ["admin", "feed", "frame", "server"];

fn generate() -> Result<String, Box<dyn std::error::Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../proto");
    let names = FILES.map(|file| format!("belay/v1/{file}.proto"));
    let descriptors = protox::compile(names, [root])?;
    let mut config = prost_build::Config::new();
    config.disable_comments(["."]);
    let request = descriptors
        .file
        .into_iter()
        .map(|file| {
            (
                prost_build::Module::from_protobuf_package_name(file.package()),
                file,
            )
        })
        .collect();
    let modules = config.generate(request)?;
    let module = prost_build::Module::from_protobuf_package_name("belay.v1");
    modules
        .get(&module)
        .cloned()
        .ok_or_else(|| "proto/belay/v1 has no package belay.v1".into())
}

fn main() -> ExitCode {
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/gen/belay.v1.rs");
    let code = match generate() {
        Ok(code) => code,
        Err(problem) => {
            eprintln!("generate: {problem}");
            return ExitCode::FAILURE;
        }
    };
    let current = fs::read_to_string(&target).unwrap_or_default();
    if env::args().any(|argument| argument == "--check") {
        if current == code {
            return ExitCode::SUCCESS;
        }
        eprintln!(
            "generate: {} is stale; run `cargo run -p belay-proto --example generate`",
            target.display()
        );
        return ExitCode::FAILURE;
    }
    if current != code
        && let Err(problem) = fs::write(&target, code)
    {
        eprintln!("generate: cannot write {}: {problem}", target.display());
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
