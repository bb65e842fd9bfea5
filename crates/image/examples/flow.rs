//! How much of an image's control flow is known: `cargo run --release -p image --example flow FILE…`

use std::time::Instant;

use image::{Binary, Callees, Flow, NameSource};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!(
        "file  procedures  blocks  edges  indirect jumps  unresolved  with missing edges  extra entries  seconds"
    );
    for path in std::env::args().skip(1) {
        let bytes = std::fs::read(&path)?;
        let begun = Instant::now();
        let binary = Binary::parse(&bytes)?;
        let callees = Callees::new(&binary, &bytes);
        let (mut graphs, mut missing, mut sums) = (0, 0, [0; 5]);
        for procedure in binary.procedures() {
            // A stub of the linkage table is one indirect jump by design.
            if procedure.source == NameSource::Plt {
                continue;
            }
            let Some(graph) = callees.flow_of(procedure) else { continue };
            graphs += 1;
            missing += usize::from(graph.has_missing_edges());
            let jumps = graph.steps.iter().filter(|step| step.flow == Flow::IndirectJump).count();
            let extra = graph.entries.len().saturating_sub(1);
            let of_this =
                [graph.blocks.len(), graph.edges.len(), jumps, graph.unresolved.len(), extra];
            sums.iter_mut().zip(of_this).for_each(|(sum, n)| *sum += n);
            if std::env::var_os("SHOW").is_some() {
                for &k in &graph.unresolved {
                    println!("  {:#x} in {}", graph.steps[k].address, procedure.name("image"));
                }
            }
        }
        let [blocks, edges, jumps, unresolved, extra] = sums;
        let seconds = begun.elapsed().as_secs_f64();
        println!(
            "{path}  {graphs}  {blocks}  {edges}  {jumps}  {unresolved}  {missing}  {extra}  {seconds:.2}"
        );
    }
    Ok(())
}
