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
