// Figures of NVIDIA/nccl, src/graph/tuning.cc, at 2.30.7; changes between versions as its history
// has them.
#include "sim/cost/nccl_constants.hpp"

#include <bit>

namespace lockstep::sim {

namespace {

constexpr double no_cap = 1e9;

constexpr PerProtocol simple_only(double time_us) { return {0, 0, time_us}; }
constexpr PerNodes any_nodes(double rate) { return {rate, rate, rate}; }

constexpr NcclConstants newest = {
    .tree = {{6.8, 14.0, 8.4}, {{{0.6, 1.25, 4.0}, {1.0, 1.9, 4.0}, {5.0, 8.5, 14.0}}}},
    .ring = {{6.6, 14.0, 8.4}, {{{0.6, 1.9, 3.4}, {1.0, 2.5, 5.7}, {2.7, 4.0, 14.0}}}},
    .collnet_direct = {{}, {{simple_only(3.7), simple_only(3.7), simple_only(31)}}},
    .collnet_chain = {{}, {{simple_only(2.8), simple_only(2.8), simple_only(30)}}},
    .nvls = {{}, {{simple_only(25), simple_only(0), simple_only(18)}}},
    .nvls_tree = {{}, {{simple_only(25), simple_only(0), simple_only(20.9)}}},
    .pat = {{8, 8, 8}, {{simple_only(4), simple_only(4), simple_only(14)}}},
    .ll_cap = {{{39.0, 39.0, 20.4}, {87.7, 22.5, 19.0}, {141, 45, 35}, {282, 90, 70}}},
    .ring_ll128_cap = {{any_nodes(20), any_nodes(20), any_nodes(36.7), any_nodes(40)}},
    .tree_ll128_cap = {{any_nodes(20), any_nodes(20), {36.7, 36.7, 29.0}, {55.6, 31.67, 20.0}}},
    .tree_simple_cap =
        {{{26.5, 18.5, 10.0}, {24.0, 23.6, 17.8}, {38.7, 41.4, 36.0}, {70.0, 42.8, 24.0}}},
    .nvls_tree_cap =
        {{{26.5, 18.5, 10.0}, {24.0, 23.6, 17.8}, {no_cap, 57.7, 45.5}, {no_cap, 96.0, 80.0}}},
    .nvls_efficiency = {0, 0, 0.85, 0.74},
};

// Rates of two generations ago count for what a release does not know yet.
void forget_blackwell(NcclConstants& constants) {
  constants.ll_cap[3] = {282, 90, 70};
  constants.ring_ll128_cap[3] = any_nodes(2 * 36.7);
  constants.tree_ll128_cap[3] = {2 * 36.7, 2 * 36.7, 2 * 29.0};
  constants.tree_simple_cap[3] = {2 * 38.7, 2 * 41.4, 2 * 36.0};
  constants.nvls_tree_cap[3] = {no_cap, no_cap, no_cap};
  constants.nvls_tree_cap[2] = {no_cap, no_cap, no_cap};
  constants.nvls_efficiency[3] = 0.85;
  constants.nvls_tree.step[2] = simple_only(14);
}

void forget_hopper(NcclConstants& constants) {
  for (PerGeneration* caps : {&constants.ll_cap, &constants.ring_ll128_cap,
                              &constants.tree_ll128_cap, &constants.tree_simple_cap}) {
    (*caps)[2] = (*caps)[1];
    (*caps)[3] = (*caps)[1];
  }
  constants.nvls_efficiency = {};  // no NVLS
}

}  // namespace

std::string_view name_of(NcclProtocol protocol) {
  constexpr std::array<std::string_view, nccl_protocols> names = {"LL", "LL128", "Simple"};
  return names[static_cast<size_t>(protocol)];
}

GpuGeneration generation_of(int compute_capability) {
  if (compute_capability >= 100) {
    return GpuGeneration::blackwell;
  }
  if (compute_capability >= 90) {
    return GpuGeneration::hopper;
  }
  return compute_capability >= 80 ? GpuGeneration::ampere : GpuGeneration::volta;
}

NcclConstants nccl_constants(NcclVersion version) {
  NcclConstants constants = newest;
  const auto before = [&version](int minor) { return version < NcclVersion{2, minor}; };
  if (before(30)) {
    constants.nvls_tree_cap[3][2] = 43.8;
  }
  if (before(28)) {
    forget_blackwell(constants);
  }
  if (before(23)) {
    constants.tree.base[2] = 0;
    constants.tree.step[0][2] = 28;
  }
  if (before(21)) {
    constants.ll_cap[2] = {87.7, 22.5, 19.0};
    constants.nvls.step[0] = simple_only(23);
    constants.nvls_tree.step[0] = simple_only(23);
  }
  if (before(19)) {
    constants.tree.step[0][2] = 4;
    constants.nvls.base = simple_only(23);
    constants.nvls.step[0] = {};
    constants.nvls_tree.base = simple_only(23);
    constants.nvls_tree.step[0] = {};
  }
  if (before(18)) {
    forget_hopper(constants);
    constants.tree.base = {4.4, 4.4, 0};
    constants.ring.base = {3.6, 10.0, 8.4};
    constants.tree.step[0] = {0.52, 1.2, 28};
    constants.ring.step[0] = {0.47, 1.9, 3.4};
    constants.tree.step[1][2] = 28;
    constants.tree.step[2][2] = 28;
  }
  return constants;
}

double tree_correction(NcclProtocol protocol, int64_t bytes) {
  constexpr int64_t smallest = 64;
  constexpr size_t last = 22;
  constexpr std::array<std::array<double, 24>, nccl_protocols> factors = {
      {{1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1, 1},
       {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1, 1},
       {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5,
        .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9, .9}}};
  if (bytes < smallest) {
    return 1;
  }
  const auto power =
      static_cast<size_t>(std::bit_width(static_cast<uint64_t>(bytes / smallest)) - 1);
  return power <= last ? factors[static_cast<size_t>(protocol)][power] : 1;
}

}  // namespace lockstep::sim
