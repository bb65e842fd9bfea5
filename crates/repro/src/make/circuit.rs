//! A circuit for a placer, as Verilog; yosys turns it into BLIF.

use super::rng::Rng;

/// A module `top` of `cells` four-bit cells of mixed kinds, each fed by two earlier ones.
pub(super) fn verilog(seed: u64, cells: u64) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    let mut out = String::from(
        "module top(input clk, input [3:0] in, output [3:0] out);\n  reg [3:0] r0;\n  \
         always @(posedge clk) r0 <= r0 + in;\n",
    );
    for cell in 1..=cells {
        let (a, b) = (rng.below(cell), rng.below(cell));
        let operation = match rng.below(5) {
            0 => format!("r{a} + r{b}"),
            1 => format!("r{a} ^ {{r{b}[2:0], r{b}[3]}}"),
            2 => format!("r{a}[0] ? r{b} : ~r{a}"),
            3 => format!("r{a} - (r{b} & 4'd{})", rng.below(16)),
            _ => format!("(r{a} | r{b}) + r{}", cell - 1),
        };
        out.push_str(&format!(
            "  reg [3:0] r{cell};\n  always @(posedge clk) r{cell} <= {operation};\n"
        ));
    }
    let tail: Vec<String> = (0..=cells).map(|cell| format!("r{cell}")).collect();
    out.push_str(&format!("  assign out = {};\nendmodule\n", tail.join(" ^ ")));
    out.into_bytes()
}
