#include <catch2/catch.hpp>

#include "explain/explain.hpp"
#include "model/scenario/finding_codes.hpp"
#include "tests/unit/rehearsal/rehearsed.hpp"

using namespace lockstep;
using namespace lockstep::cli;
using namespace lockstep::test;

TEST_CASE("the example of every explained code gives that finding and no other") {
  int examples = 0;
  for (const Page* page : finding_pages()) {
    if (page->scenario.empty()) {
      continue;
    }
    ++examples;
    INFO(page->name);
    const std::string text(page->scenario.substr(1));
    const Rehearsal ran = std::move(rehearsed(text).front().result);
    REQUIRE(ran.findings.size() == 1);
    CHECK(ran.findings.front().code == page->name);
    CHECK(ran.findings.front().more == "lockstep explain " + std::string(page->name));
  }
  CHECK(examples == std::ssize(finding_codes));
}

// The lines behind two spaces, up to an empty line.
static std::string indented_lines(std::string_view page, std::string_view first) {
  std::string lines;
  for (size_t at = page.find(first); at < page.size();) {
    const size_t end = page.find('\n', at);
    const std::string_view line = page.substr(at, end - at);
    if (!line.starts_with("  ")) {
      break;
    }
    lines += std::string(line.substr(2)) + "\n";
    at = end + 1;
  }
  return lines;
}

// The lines of the page from `first` on, in a scenario that lacks only these.
static Rehearsal rehearsed_from_page(std::string_view name, std::string_view first,
                                     const std::string& more) {
  const Page* page = find_page(name);
  REQUIRE(page != nullptr);
  const std::string lines = indented_lines(page->text, first);
  REQUIRE(lines.find("trainer:") != std::string::npos);
  Rehearsal ran = std::move(rehearsed("version: 1\nmodel: {preset: mlp}\n"
                                      "data: {train: {samples: 640, batch_size: 8}}\n" +
                                      more + lines)
                                .front()
                                .result);
  REQUIRE(ran.ran());
  CHECK(ran.findings.empty());
  return ran;
}

TEST_CASE("what a page shows for a script of Fabric trains as one device does") {
  const Rehearsal ran =
      rehearsed_from_page("Fabric", "  trainer:", "cluster: {preset: dgx-a100, nodes: 1}\n");
  CHECK(ran.results.prediction.steps == 10);  // 640 samples, 8 ranks of 8
}

TEST_CASE("what a page shows for find_usable_cuda_devices takes the GPUs that are left") {
  const Rehearsal ran = rehearsed_from_page("find_usable_cuda_devices", "  cluster:", "");
  CHECK(ran.run.preparation.options.world_size == 2);
  CHECK(ran.run.preparation.placement.devices == std::vector<int64_t>{2, 3});
}
