#![no_main]

use hbpca_io::ChunkManifest;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = ChunkManifest::parse(bytes, "manifest.json");
});
