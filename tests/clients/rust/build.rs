//! Makes the client from the document that the variable `DOCUMENT` names.

use std::path::Path;

fn main() {
    println!("cargo::rerun-if-env-changed=DOCUMENT");
    let document = std::env::var("DOCUMENT").expect("DOCUMENT names the document");
    println!("cargo::rerun-if-changed={document}");
    let text = std::fs::read_to_string(&document).expect("the document is readable");
    let document = serde_json::from_str(&text).expect("the document is OpenAPI 3.0 in JSON");
    let tokens = progenitor_impl::Generator::default().generate_tokens(&document);
    let tokens = tokens.expect("progenitor takes the document");
    let client = syn::parse2(tokens).expect("the client is Rust");
    let folder = std::env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    let target = Path::new(&folder).join("client.rs");
    std::fs::write(target, prettyplease::unparse(&client)).expect("the client is written");
}
