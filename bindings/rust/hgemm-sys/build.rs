//! Finds libhgemm: in HGEMM_LIB_DIR if that is set, else where pkg-config says, unless
//! HGEMM_NO_PKG_CONFIG is set; then the linker's own path must do.
use std::env;
use std::process::Command;

/// The folders of `pkg-config --libs-only-L hgemm`, those of the system left out.
fn ask_pkg_config() -> Result<Vec<String>, String> {
    let program = env::var("PKG_CONFIG").unwrap_or_else(|_| "pkg-config".into());
    let output = Command::new(&program)
        .args(["--libs-only-L", "--print-errors", "hgemm"])
        .output()
        .map_err(|error| format!("{}: {}", program, error))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim().to_string());
    }
    let flags = String::from_utf8_lossy(&output.stdout);
    Ok(flags
        .split_whitespace()
        .filter_map(|flag| flag.strip_prefix("-L"))
        .map(String::from)
        .collect())
}

fn main() {
    for name in [
        "HGEMM_LIB_DIR",
        "HGEMM_NO_PKG_CONFIG",
        "PKG_CONFIG",
        "PKG_CONFIG_PATH",
    ] {
        println!("cargo:rerun-if-env-changed={}", name);
    }
    println!("cargo:rustc-link-lib=hgemm");
    let folders = match env::var("HGEMM_LIB_DIR") {
        Ok(folder) => vec![folder],
        Err(_) if env::var_os("HGEMM_NO_PKG_CONFIG").is_some() => vec![],
        Err(_) => ask_pkg_config().unwrap_or_else(|why| {
            println!(
                "cargo:warning=libhgemm: {}; HGEMM_LIB_DIR can name its folder",
                why
            );
            vec![]
        }),
    };
    for folder in folders {
        println!("cargo:rustc-link-search=native={}", folder);
        // What a crate that depends on this one finds as DEP_HGEMM_LIBDIR.
        println!("cargo:libdir={}", folder);
    }
}
