//! Small C files, each compiled by a process of its own.

use super::Made;
use super::rng::Rng;

/// `count` C files under `directory`, and a response file `files` that names them for gcc.
pub(super) fn c_files(seed: u64, count: u64, directory: &str) -> Vec<Made> {
    let mut made = Vec::new();
    let mut list = String::new();
    for file in 0..count {
        // A stream per file: file 7 of 10 is file 7 of 50.
        let mut rng = Rng::new(seed.wrapping_add(file.wrapping_mul(0x1_0001)));
        let path = format!("{directory}/f{file:02}.c");
        list.push_str(&path);
        list.push('\n');
        made.push(Made { path, bytes: c_file(&mut rng, file).into_bytes() });
    }
    made.push(Made { path: format!("{directory}/files"), bytes: list.into_bytes() });
    made
}

fn c_file(rng: &mut Rng, file: u64) -> String {
    let mut out = String::from("#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n\n");
    out.push_str(&format!("static int table{file}[256];\n\n"));
    let procedures = rng.between(4, 8);
    for p in 0..procedures {
        out.push_str(&procedure(rng, file, p));
    }
    out.push_str(&format!("int run{file}(int n)\n{{\n    int sum = 0;\n"));
    for p in 0..procedures {
        out.push_str(&format!("    sum += p{file}_{p}(n + {p});\n"));
    }
    out.push_str(&format!(
        "    printf(\"%d\\n\", sum + table{file}[n & 255]);\n    return sum;\n}}\n"
    ));
    out
}

fn procedure(rng: &mut Rng, file: u64, p: u64) -> String {
    let (a, b, c) = (rng.between(2, 60), rng.between(3, 900), rng.between(1, 7));
    let body = match rng.below(4) {
        0 => format!(
            "    for (i = 0; i < n; i++) {{\n        table{file}[(i * {a}) & 255] += i ^ {b};\n        \
             if (table{file}[i & 255] > {b}) s += i >> {c};\n    }}\n"
        ),
        1 => format!(
            "    switch (n % 9) {{\n    case 0: s = {a}; break;\n    case 1: s = n * {b}; break;\n    \
             case 2: s = n << {c}; break;\n    case 5: s = {b} - n; break;\n    case 7: s = n / {a}; \
             break;\n    default: s = n ^ {b};\n    }}\n    for (i = n; i > 0; i /= 2) s += i;\n"
        ),
        2 => format!(
            "    char text[64];\n    for (i = 0; i < 63; i++) text[i] = (char)('a' + (i * {a} + n) % \
             26);\n    text[63] = 0;\n    s = (int)strlen(text) + strcmp(text, \"{}\") * {c};\n",
            rng.pick(&["alpha", "beta", "gamma", "delta"])
        ),
        _ => format!(
            "    double x = n;\n    for (i = 1; i < {a}; i++) x = x * 0.5 + (double)i / {b};\n    \
             s = (int)x + {c};\n"
        ),
    };
    format!(
        "static int p{file}_{p}(int n)\n{{\n    int i = 0, s = {a};\n{body}    return s + i;\n}}\n\n"
    )
}
