//! A ray tracer's scene: spheres, boxes and cylinders, some of them mirrors, over a plane.

use super::rng::Rng;

/// A decimal with three digits from an integer of thousandths, so that no float is printed.
fn milli(value: i64) -> String {
    let sign = if value < 0 { "-" } else { "" };
    format!("{sign}{}.{:03}", value.abs() / 1000, value.abs() % 1000)
}

fn position(rng: &mut Rng) -> String {
    let mut axis = |span: i64, low: i64| milli(low + rng.below(span as u64) as i64);
    format!("<{}, {}, {}>", axis(8000, -4000), axis(3000, 200), axis(8000, -2000))
}

/// Lights among the objects: each asks for a shadow ray at every point hit.
const LIGHTS: u64 = 14;

/// A scene of `objects` objects.
pub(super) fn povray(seed: u64, objects: u64) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    let mut out = String::from(
        "#version 3.7;\nglobal_settings { assumed_gamma 1.0 max_trace_level 5 }\n\
         camera { location <0, 3, -9> look_at <0, 1, 1> }\n\
         light_source { <6, 9, -8> color rgb 1 }\nlight_source { <-7, 5, -3> color rgb 0.5 }\n\
         plane { y, 0 pigment { checker color rgb 0.9, color rgb 0.2 } }\n",
    );
    for _ in 0..LIGHTS {
        out.push_str(&format!("light_source {{ {} color rgb 0.2 }}\n", position(&mut rng)));
    }
    for _ in 0..objects {
        let at = position(&mut rng);
        let radius = milli(150 + rng.below(500) as i64);
        let shape = match rng.below(3) {
            0 => format!("sphere {{ {at}, {radius} "),
            1 => format!("cylinder {{ 0, <0, {radius}, 0>, {radius} translate {at} "),
            _ => format!("box {{ -{radius}, {radius} rotate <20, 30, 0> translate {at} "),
        };
        let mut part = || milli(rng.below(1001) as i64);
        let colour = format!("<{}, {}, {}>", part(), part(), part());
        let finish = match rng.below(4) {
            0 => "reflection 0.6 phong 0.9",
            1 => "reflection 0.2 diffuse 0.7",
            _ => "phong 0.5",
        };
        let texture = if rng.one_in(3) {
            format!(
                "pigment {{ marble turbulence 0.7 color_map {{ [0 rgb {colour}] [1 rgb 1] }} }}"
            )
        } else {
            format!("pigment {{ color rgb {colour} }}")
        };
        out.push_str(&format!("{shape}{texture} finish {{ {finish} }} }}\n"));
    }
    out.into_bytes()
}
