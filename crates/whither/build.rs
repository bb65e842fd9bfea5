//! The tracer's engines travel inside the binary: they are built first, on their own (see tracer-embed).

use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for source in tracer_embed::sources() {
        println!("cargo::rerun-if-changed={}", source.display());
    }
    let out = std::env::var_os("OUT_DIR").ok_or("cargo did not say where to build")?;
    let built = tracer_embed::build(Path::new(&out))?;
    println!("cargo::rustc-env=WHITHER_PLUGIN={}", built.plugin.display());
    println!("cargo::rustc-env=WHITHER_NATIVE={}", built.native.display());
    Ok(())
}
