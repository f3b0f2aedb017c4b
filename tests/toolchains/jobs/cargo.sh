# user only: it takes long, and nothing in it asks who runs it
# needs: cargo rustc gcc
cargo new -q --vcs none app && cargo new -q --vcs none --lib part
echo 'part = { path = "../part" }' >> app/Cargo.toml
echo 'pub fn twice(x: i32) -> i32 { x * 2 } #[test] fn doubles() { assert_eq!(twice(2), 4); }' > part/src/lib.rs
echo 'fn main() { println!("{} {}", part::twice(21), env!("BUILT")); }' > app/src/main.rs
echo 'fn main() { println!("cargo:rustc-env=BUILT=by-a-build-script"); }' > app/build.rs
cd app && cargo build -q --offline && target/debug/app && cargo run -q --offline
cd ../part && cargo test -q --offline > log 2>&1; grep '^test result' log | head -1 | sed 's/; finished.*//'
