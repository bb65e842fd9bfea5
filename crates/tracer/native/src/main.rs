//! The native engine: runs an x86-64 program on an x86-64 host by copying its blocks, and tells a
//! [`model::stream::CoreListener`] a thread what ran.
//!
//! Constraints: it shares the program's process. The program notices nothing: its registers, flags,
//! descriptors, signals and memory are its own, and what it asks the kernel for it gets. GS is
//! ours, and the program has one that is a number (segment).
//! It keeps no descriptor open. Where it fails the program should go on; where it cannot, one sentence
//! says why.
//!
//! Not for: other processors than the host's (that is QEMU's), what a listener does with what it hears.
//!
//! ```text
//! plan       a block read: what it touches, what must be recorded to know where
//! translate  its instructions copied, with recording between; ways: links to the next
//! context    what they record into, at GS; switch: in and out of translated code
//! thread     the loop: run, tell (teller), look up (cache), system call (calls), signal (signals)
//! load       the program put into memory (space, memory, maps)
//! ```
//!
//! What is not done: programs that load GS by a selector, use far branches or AVX-512 get an undefined
//! instruction.

mod cache;
mod calls;
mod clone;
mod context;
mod cpuid;
mod emit;
mod filter;
mod found;
mod frame;
mod guest;
mod held;
mod lend;
mod live;
mod load;
mod maps;
mod memory;
mod narrow;
mod plan;
mod robust;
mod sandbox;
mod segment;
mod signals;
mod space;
mod special;
mod stack;
mod start;
mod switch;
mod teller;
mod template;
mod thread;
mod translate;
mod views;
mod ways;

pub(crate) use start::{is_translated, program};

/// What a listener holds may be many megabytes, looked at here and there.
#[global_allocator]
static PAGES: tracer::pages::LargePages = tracer::pages::LargePages;

fn main() {
    if let Err(problem) = start::run() {
        eprintln!("whither: {problem}");
        std::process::exit(125);
    }
}
