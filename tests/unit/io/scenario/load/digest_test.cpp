#include "io/scenario/load/digest.hpp"

#include <catch2/catch.hpp>

using namespace lockstep;

namespace digest_test {

namespace {

uint64_t digest(const std::string& text) {
  std::vector<Diagnostic> diagnostics;
  const NodePtr root = parse_document(text, "scenario.yaml", 0, diagnostics);
  REQUIRE(diagnostics.empty());
  return digest_of_run(*root);
}

}  // namespace

TEST_CASE("a digest is that of what ranks do, however it is written") {
  const uint64_t plain =
      digest("version: 1\nseed_everything: 3\ncluster: {ranks: 2}\nprogram: {main: [barrier]}\n");
  CHECK(plain == digest("program:\n  main:\n    - barrier   # all\ncluster: {ranks: \"2\"}\n"
                        "seed_everything: 3\nversion: 1\n"));
  CHECK(plain == digest("version: 1\nseed_everything: 3\nverify: {world_sizes: [2]}\n"
                        "expect: [no_hang]\ncluster: {ranks: 2, calibration: a.json}\n"
                        "program: {main: [barrier]}\n"));
  for (const char* other :
       {"version: 1\nseed_everything: 4\ncluster: {ranks: 2}\nprogram: {main: [barrier]}\n",
        "version: 1\nseed_everything: 3\ncluster: {ranks: 3}\nprogram: {main: [barrier]}\n",
        "version: 1\nseed_everything: 3\ncluster: {ranks: 2}\nprogram: {main: [barrier, "
        "barrier]}\n",
        "version: 1\nseed_everything: 3\ncluster: {ranks: 2}\nverify: {numerics: true}\n"
        "program: {main: [barrier]}\n"}) {
    CHECK(plain != digest(other));
  }
}

TEST_CASE("the order of calls is part of a digest") {
  const auto with = [](const std::string& statement) {
    return digest("version: 1\nprogram: {main: [" + statement + "]}\n");
  };
  CHECK(with("{let: {a: 1, b: 2}}") != with("{let: {b: 2, a: 1}}"));
  CHECK(with("barrier, {all_reduce: x}") != with("{all_reduce: x}, barrier"));
}

}  // namespace digest_test
