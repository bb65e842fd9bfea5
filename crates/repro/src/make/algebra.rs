//! A program for the GAP interpreter.

use super::rng::Rng;

/// A program that sorts, sieves, composes permutations and walks orbits, `rounds` times. Only
/// the interpreter's own objects are used, so that the work is the interpreter's.
pub(super) fn gap(seed: u64, rounds: u64) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    let mut points: Vec<u64> = (1..=60).collect();
    for i in (1..points.len()).rev() {
        points.swap(i, rng.below(i as u64 + 1) as usize);
    }
    let images: Vec<String> = points.iter().map(u64::to_string).collect();
    let start = rng.between(1, 30_000);
    format!(
        "images := [ {} ];\nstate := {start};\n{PROGRAM}\
         sum := 0;\nfor round in [ 1 .. {rounds} ] do\n  sum := (sum + work( round )) mod 1000003;\n\
         od;\nPrint( \"checksum \", sum, \"\\n\" );\nQUIT;\n",
        images.join(", ")
    )
    .into_bytes()
}

const PROGRAM: &str = "\
next := function()
  state := (state * 1103 + 12345) mod 65536;
  return state;
end;
sieve := function( n )
  local flags, i, j, count;
  flags := []; count := 0;
  for i in [ 2 .. n ] do flags[ i ] := true; od;
  for i in [ 2 .. n ] do
    if flags[ i ] then
      count := count + 1;
      j := i * i;
      while j <= n do flags[ j ] := false; j := j + i; od;
    fi;
  od;
  return count;
end;
sort := function( list )
  local i, j, x;
  for i in [ 2 .. Length( list ) ] do
    x := list[ i ]; j := i - 1;
    while j > 0 and list[ j ] > x do list[ j + 1 ] := list[ j ]; j := j - 1; od;
    list[ j + 1 ] := x;
  od;
  return list[ 1 ] + list[ Length( list ) ];
end;
orbit := function( perm, point )
  local seen, count;
  seen := point; count := 0;
  repeat seen := seen ^ perm; count := count + 1; until seen = point;
  return count;
end;
work := function( round )
  local perm, power, i, total, big;
  perm := PermList( images ); power := (); total := 0;
  for i in [ 1 .. 40 ] do power := power * perm; total := total + orbit( power, i ); od;
  total := total + sieve( 900 + round mod 50 );
  total := total + sort( List( [ 1 .. 90 ], i -> next() ) );
  big := 1;
  for i in [ 1 .. 60 ] do big := big * (i + round); od;
  return (total + big mod 9973) mod 1000003;
end;
";
