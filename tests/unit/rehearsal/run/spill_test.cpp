#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "cli/render/json.hpp"
#include "cli/render/render.hpp"
#include "cli/render/timeline/timeline.hpp"
#include "tests/unit/rehearsal/rehearsed.hpp"

using namespace lockstep;
using namespace lockstep::cli;
using namespace lockstep::test;

namespace spill_test {

namespace {

namespace fs = std::filesystem;

Rehearsal rehearsed_within(const CaseSource& source, int64_t journal_bytes_max) {
  Collected collected = collect(source);
  REQUIRE(collected.diagnostics.empty());
  RehearseRequest request;
  request.journal_bytes_max = journal_bytes_max;
  rehearse_all(collected.jobs, request, Judges::all, 1);
  return std::move(collected.jobs.front().result);
}

// All that a user can see of a case.
std::string all_output(const Rehearsal& rehearsal) {
  const fs::path path = fs::temp_directory_path() / "lockstep-spill-test.json";
  std::string text = render_verify(rehearsal, {}) + render_run(rehearsal, {}, true) +
                     text_of(json_of(rehearsal, Request{}));
  text += write_timeline(rehearsal, path.string());
  std::ifstream file(path, std::ios::binary);
  text.append(std::istreambuf_iterator<char>(file), {});
  fs::remove(path);
  return text;
}

CaseSource file_source(const std::string& name, std::vector<std::string> set) {
  CaseSource source = split_case(LOCKSTEP_SOURCE_DIR "/scenarios/" + name);
  source.set = std::move(set);
  return source;
}

const std::string long_loop = R"yaml(    - repeat: 2500
      do:
        - kernel: 10 us
        - all_reduce: {elements: 64, async: true, as: sum}
        - kernel: 5 us
        - wait: sum
)yaml";

// Many rows and few operations: none waits in the launch queue.
const std::string branch_loop = R"yaml(    - repeat: 9000
      do:
        - if: rank == 0
          then:
            - host: 1 us
)yaml";

const std::string ring_loop = R"yaml(    - repeat: 1500
      do:
        - if: rank == 0
          then:
            - send: {elements: 16, dst: 1}
            - recv: {elements: 16, src: 1}
          else:
            - recv: {elements: 16, src: 0}
            - send: {elements: 16, dst: 0}
)yaml";

}  // namespace

TEST_CASE("what is reported of a case does not depend on what its journal spilled") {
  const std::vector<CaseSource> sources = {
      source_of_text(bare_text(2, long_loop)),
      source_of_text(bare_text(2, branch_loop + guarded_statements)),
      source_of_text(bare_text(2, ring_loop)),
      file_source("accumulation.yaml:accumulated",
                  {"trainer.max_epochs=80", "verify.single_device=false"}),
  };
  for (const CaseSource& source : sources) {
    constexpr int64_t tight = 1 << 18;
    const Rehearsal resident = rehearsed_within(source, int64_t{1} << 40);
    const Rehearsal spilled = rehearsed_within(source, tight);
    CHECK(resident.run.store->bytes() == 0);
    CHECK(spilled.run.store->bytes() > 0);
    CHECK(all_output(spilled) == all_output(resident));
  }
  const Rehearsal hang = rehearsed_within(sources[1], 1 << 18);
  REQUIRE(hang.findings.size() == 1);
  CHECK(hang.findings[0].code == "LS101");
}

TEST_CASE("a journal that finds no room ends its case undecided, which says where and why") {
  const char* const before = std::getenv("TMPDIR");
  const std::string folder = before != nullptr ? before : "";
  setenv("TMPDIR", "/proc/no-such-folder", 1);
  const Rehearsal rehearsal = rehearsed_within(source_of_text(bare_text(2, long_loop)), 0);
  if (before != nullptr) {
    setenv("TMPDIR", folder.c_str(), 1);
  } else {
    unsetenv("TMPDIR");
  }
  CHECK(rehearsal.undecided.find("/proc/no-such-folder cannot store it") != std::string::npos);
  CHECK(exit_code_of(rehearsal, false) == ExitCode::undecided);
  CHECK(render_verify(rehearsal, {}).find("TMPDIR") != std::string::npos);
}

}  // namespace spill_test
