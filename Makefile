# Two commands do all the set-up: `make run` and `make test`.
# Both install what is missing through the system's package manager first (tools/need).

CARGO ?= cargo
export PATH := $(HOME)/.cargo/bin:$(PATH)

.PHONY: run test check guest goldens smoke soak bench picture install clean help

help:
	@echo "make run      install what is missing, build, and run the main job on a real program"
	@echo "make test     install what the tests need, and pass them all"
	@echo "make check    formatting, lints with warnings denied, documentation of private items"
	@echo "make guest    the counters tests on a real kernel's PMU, in an emulated arm64 machine"
	@echo "make goldens  write every golden file anew"
	@echo "make smoke    the seeded results that CI guards"
	@echo "make soak     the long campaigns: fuzzing at length, a hundred killed daemons"
	@echo "make bench    timings; printed, never a gate"
	@echo "make picture  draw the README's picture anew"
	@echo "make install  binary, manual pages, completions, event-set library and header under PREFIX (/usr/local)"

# What is compressed is a piece of this program itself: a real file, and always there. The modelled
# half is added where there is an engine; `whither doctor` says so where there is not.
run:
	@tools/need build model
	$(CARGO) build --release -p whither
	@if target/release/whither doctor --json | grep -q '"key":"engine","what":"[^"]*","state":"works"'; then model=--model; fi; \
	set -x; head -c 1000000 target/release/whither | target/release/whither run $$model -- gzip -9 > /dev/null

# The tracer's own tests run twice, under each engine: both must tell the same.
test:
	@tools/need build test
	$(CARGO) test --workspace
	WHITHER_ENGINE=qemu $(CARGO) test -p tracer

check:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --document-private-items

guest:
	@tools/guest test

goldens:
	WHITHER_BLESS=1 $(CARGO) test -p whither

smoke:
	$(CARGO) run --release -p repro -- smoke

# Ratios against peers in interleaved pairs; `make bench` may take minutes and proves nothing in CI.
bench:
	$(CARGO) build --release -p whither -p repro
	target/release/repro prepare
	target/release/repro peers
	target/release/repro model-speed --quick
	$(CARGO) run --release -p counters --example switch_cost

soak:
	@tools/need build test
	WHITHER_SOAK=1 WHITHER_SOAK_ROUNDS=20 WHITHER_FUZZ_ROUNDS=20000 $(CARGO) test --release --workspace

picture:
	$(CARGO) build --release -p whither
	target/release/whither run --hottest 1 --procedures 8 -o docs/run.svg -- gzip -9 -c target/release/whither > /dev/null

PREFIX ?= /usr/local
install:
	$(CARGO) build --release -p whither -p counters-c
	install -D target/release/whither $(DESTDIR)$(PREFIX)/bin/whither
	install -D -m 644 crates/counters/c/include/whither_counters.h $(DESTDIR)$(PREFIX)/include/whither_counters.h
	install -D target/release/libwhither_counters.so $(DESTDIR)$(PREFIX)/lib/libwhither_counters.so
	install -D -m 644 target/release/libwhither_counters.a $(DESTDIR)$(PREFIX)/lib/libwhither_counters.a
	install -d $(DESTDIR)$(PREFIX)/share/man/man1
	target/release/whither man --dir $(DESTDIR)$(PREFIX)/share/man/man1
	install -d $(DESTDIR)$(PREFIX)/share/bash-completion/completions $(DESTDIR)$(PREFIX)/share/zsh/site-functions $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d
	target/release/whither completions bash > $(DESTDIR)$(PREFIX)/share/bash-completion/completions/whither
	target/release/whither completions zsh > $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_whither
	target/release/whither completions fish > $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/whither.fish

clean:
	$(CARGO) clean
