//! Scratch.
use gjc_log::fs::OsFs;
use std::path::Path;
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let path = Path::new(&args[1]);
    let t = std::time::Instant::now();
    let loaded = gjc_log::Reader::open(&OsFs, path).unwrap();
    let blobs = gjc_log::BlobStore::new(std::sync::Arc::new(OsFs), args.get(3).map(Into::into));
    let children = gjc_export::children(&OsFs, path);
    let making = gjc_export::Making {
        blobs: &blobs,
        children: &children,
        at: gjc_entry::Timestamp::from_millis(1796042387559),
        mask: None,
        progress: &|_, _| {},
    };
    let n = gjc_export::to_file(&OsFs, Path::new(&args[2]), gjc_export::Replace::Any, |out| {
        gjc_export::html(&loaded, &making, out)
    })
    .unwrap();
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    println!("{n} bytes {:?} {}", t.elapsed(), status.lines().find(|l| l.starts_with("VmHWM")).unwrap());
}
