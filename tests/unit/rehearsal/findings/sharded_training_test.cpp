// Trainings whose ranks divide parameters, gradients or optimizer state among them equal that of
// one device, in whatever types they compute and communicate.
#include <catch2/catch.hpp>

#include "rehearsal/findings/invariants.hpp"
#include "rehearsal/findings/narrow_types.hpp"
#include "tests/unit/rehearsal/rehearsed.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

std::vector<cli::Job> sharded_cases() {
  cli::CaseSource source;
  source.path = LOCKSTEP_SOURCE_DIR "/tests/data/sharded.yaml";
  cli::Collected collected = cli::collect(source);
  REQUIRE(collected.diagnostics.empty());
  cli::RehearseRequest request;
  request.find_smallest = false;
  cli::rehearse_all(collected.jobs, request, cli::Judges::all, 2);
  return std::move(collected.jobs);
}

std::string narrow_of(const cli::OneRun& run) {
  const std::optional<cli::NarrowType> narrow = cli::narrow_beside_parameters(run);
  return !narrow ? "none" : std::string(name_of(narrow->dtype)) + (narrow->in_layers ? " all" : "");
}

}  // namespace

TEST_CASE("strategies that shard train as one device does, without a race") {
  std::map<std::string, std::string> narrow;
  for (const cli::Job& job : sharded_cases()) {
    INFO(job.scenario->name);
    for (const Finding& finding : job.result.findings) {
      INFO(finding.code << " " << finding.title << ": " << finding.why.text);
      // Batch norm takes statistics of a part of the batch.
      CHECK((finding.code == "LS306" && finding.level == Level::warning));
    }
    narrow[job.scenario->name] = narrow_of(job.result.run);
  }
  CHECK(narrow["zero_3_offload"] == "bf16 all");
  CHECK(narrow["fsdp2_kept_in_pairs"] == "bf16 all");
  CHECK(narrow["fsdp2_mesh"] == "fp16 all");
  CHECK(narrow["fairscale_buffers"] == "fp16");
  CHECK(narrow["zero_redundancy"] == "none");
}
