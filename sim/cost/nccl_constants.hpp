#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace lockstep::sim {

/// Wire formats of NCCL: flags beside each 8 bytes, beside each 120 bytes, and none.
enum class NcclProtocol : uint8_t { ll, ll128, simple };
inline constexpr size_t nccl_protocols = 3;
std::string_view name_of(NcclProtocol protocol);

/// Generations that NCCL's tables distinguish. Turing counts as Volta, Ada as Ampere.
enum class GpuGeneration : uint8_t { volta, ampere, hopper, blackwell };
GpuGeneration generation_of(int compute_capability);

/// What a step of a collective crosses.
enum class Medium : uint8_t { nvlink, pcie, network };

/// One figure for each protocol.
using PerProtocol = std::array<double, nccl_protocols>;
/// One figure on one node, on two, and on three or more.
using PerNodes = std::array<double, 3>;
/// A row for each generation.
using PerGeneration = std::array<PerNodes, 4>;

/// Microseconds of one algorithm: once per call, and per step by medium.
struct NcclLatencies {
  PerProtocol base{};
  std::array<PerProtocol, 3> step{};  ///< by Medium
};

/// The constants of src/graph/tuning.cc. Latencies in microseconds, rates in GB/s.
struct NcclConstants {
  NcclLatencies tree;
  NcclLatencies ring;
  NcclLatencies collnet_direct;
  NcclLatencies collnet_chain;
  NcclLatencies nvls;
  NcclLatencies nvls_tree;
  NcclLatencies pat;
  PerGeneration ll_cap;          ///< of all channels together
  PerGeneration ring_ll128_cap;  ///< of one channel, as all below
  PerGeneration tree_ll128_cap;
  PerGeneration tree_simple_cap;
  PerGeneration nvls_tree_cap;
  std::array<double, 4> nvls_efficiency;
};

/// A release of NCCL.
struct NcclVersion {
  int major = 2;
  int minor = 30;
  auto operator<=>(const NcclVersion&) const = default;
};

/// The constants of that release. Those before 2.8 are taken as 2.8, those after 2.30 as 2.30.
NcclConstants nccl_constants(NcclVersion version);

/// By how much the rate of an all_reduce of `bytes` over trees is multiplied.
double tree_correction(NcclProtocol protocol, int64_t bytes);

}  // namespace lockstep::sim
