# Two commands: `make demo` and `make test`. Both install what is missing, then build into build/.
BUILD ?= build
JOBS ?= $(shell nproc)
ARCH ?= sm_90a

.PHONY: all setup build demo test lint sanitize sanitize-parsers install clean
all: build

setup:
	@scripts/setup

$(BUILD)/build.ninja: | setup
	@cmake -S . -B $(BUILD) -G Ninja -DCMAKE_BUILD_TYPE=Release $(CMAKE_ARGS) >$(BUILD).configure.log 2>&1 || { mkdir -p $(BUILD); cat $(BUILD).configure.log; exit 1; }
	@mv $(BUILD).configure.log $(BUILD)/configure.log

build: setup $(BUILD)/build.ninja
	@cmake --build $(BUILD) -j $(JOBS)

demo: build
	@scripts/demo $(BUILD) $(ARCH)

test: build
	@cd $(BUILD) && ctest --output-on-failure -j $(JOBS)

lint: build
	@scripts/lint $(BUILD)

# The tests of the lower layers again, under AddressSanitizer and UndefinedBehaviorSanitizer; sanitize-parsers: those of what reads foreign bytes.
sanitize: setup
	@cmake --preset sanitize >/dev/null && cmake --build --preset sanitize -j $(JOBS) && ctest --preset sanitize -j $(JOBS)
sanitize-parsers: setup
	@cmake --preset sanitize >/dev/null && cmake --build build-sanitize --target wire_test -j $(JOBS) && build-sanitize/tests/wire_test

install: build
	@cmake --install $(BUILD)

clean:
	@rm -rf $(BUILD) build-sanitize
