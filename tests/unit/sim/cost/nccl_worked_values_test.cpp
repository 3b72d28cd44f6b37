// Worked values of NCCL's formulas, calculated step by step in docs/collectives.md.
#include <catch2/catch.hpp>

#include "sim/cost/nccl_choice.hpp"

using namespace lockstep;
using namespace lockstep::sim;

namespace nccl_worked_values_test {

namespace {

NcclCommunicator eight_a100() {
  NcclCommunicator communicator;
  communicator.ranks = 8;
  communicator.generation = GpuGeneration::ampere;
  communicator.has_nvswitch = true;
  communicator.allows_ll128 = true;
  communicator.ring = {12, 20, 20};
  communicator.tree = {12, 20, 20};
  return communicator;
}

NcclCommunicator h100(int64_t nodes) {
  NcclCommunicator communicator = eight_a100();
  communicator.generation = GpuGeneration::hopper;
  communicator.ranks = 8 * nodes;
  communicator.nodes = nodes;
  communicator.ring = nodes == 1 ? NcclGraph{12, 30, 30} : NcclGraph{8, 45, 45};
  communicator.tree = communicator.ring;
  communicator.nvls = nodes == 1 ? NcclGraph{8, 40, 40} : NcclGraph{8, 45, 45};
  return communicator;
}

NcclCandidate candidate(const NcclCommunicator& communicator, const std::string& name,
                        NcclFunction function = NcclFunction::all_reduce) {
  for (const NcclCandidate& each :
       nccl_candidates(communicator, nccl_constants({}), {}, function)) {
    if (each.name() == name) {
      return each;
    }
  }
  FAIL("no candidate " << name);
  return {};
}

}  // namespace

TEST_CASE("NCCL on 8 A100: 8 B take 15.0 us over a ring and 15.2 us over trees") {
  CHECK(candidate(eight_a100(), "Ring LL").latency_us == Approx(6.6 + 14 * 0.6));
  CHECK(candidate(eight_a100(), "Ring LL").latency_us == Approx(15.0));
  CHECK(candidate(eight_a100(), "Tree LL").latency_us == Approx(15.2));
}

TEST_CASE("NCCL on 8 A100: 12 channels of 20 GB/s are 240 GB/s on the bus, 137.1 for the call") {
  CHECK(candidate(eight_a100(), "Ring Simple").bandwidth_GBps == Approx(240 * 8.0 / 14));
  CHECK(candidate(eight_a100(), "Ring Simple").bandwidth_GBps == Approx(137.1).epsilon(5e-4));
}

TEST_CASE("NCCL on 8 H100: NVLS over 8 channels of 40 GB/s has 272 GB/s") {
  // 40 x 0.85 x 7/8 x 2 = 59.5 for each channel, 476 on the bus.
  CHECK(candidate(h100(1), "NVLS Simple").bandwidth_GBps == Approx(476 * 8.0 / 14));
  CHECK(candidate(h100(1), "NVLS Simple").bandwidth_GBps == Approx(272));
}

TEST_CASE("NCCL on 2 x 8 H100: NVLSTree has 246.2 GB/s") {
  // min(45 x 0.85 x 7/8 x 2, 2 x 45, 57.7) x 8 = 461.6 on the bus.
  CHECK(candidate(h100(2), "NVLSTree Simple").bandwidth_GBps == Approx(461.6 * 16 / 30));
  CHECK(candidate(h100(2), "NVLSTree Simple").bandwidth_GBps == Approx(246.2).epsilon(5e-4));
}

TEST_CASE("NCCL on 2 nodes of 8: 8 B take 25.2 us over trees") {
  CHECK(candidate(h100(2), "Tree LL").latency_us == Approx(6.8 + 2 * (7 * 0.6 + 5.0)));
  CHECK(candidate(h100(2), "Tree LL").latency_us == Approx(25.2));
}

TEST_CASE("NCCL takes the ring for 8 B on 8 A100, and LL") {
  const NcclCommunicator communicator = eight_a100();
  const NcclChoice choice = cheapest(
      communicator, nccl_candidates(communicator, nccl_constants({}), {}, NcclFunction::all_reduce),
      NcclFunction::all_reduce, 8);
  CHECK(choice.candidate.name() == "Ring LL");
  CHECK(choice.estimate.latency_us == Approx(15.0));
}

TEST_CASE("NCCL's tree factor begins at 64 B, holds for a power of two, and ends after 2^22 x 64") {
  CHECK(tree_correction(NcclProtocol::simple, 63) == 1);
  CHECK(tree_correction(NcclProtocol::simple, 64) == 0.9);
  CHECK(tree_correction(NcclProtocol::ll, 64 << 12) == 0.4);
  CHECK(tree_correction(NcclProtocol::ll, (64 << 13) - 1) == 0.4);
  CHECK(tree_correction(NcclProtocol::simple, int64_t{64} << 22) == 0.9);
  CHECK(tree_correction(NcclProtocol::simple, int64_t{64} << 23) == 1);
}

}  // namespace nccl_worked_values_test
