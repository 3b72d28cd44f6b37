#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/core/instant.hpp"
#include "model/core/units.hpp"
#include "model/scenario/placed.hpp"
#include "model/scenario/rank_selection.hpp"

namespace lockstep {

enum class FaultKind : uint8_t {
  straggler,
  slow_data,
  slow_link,
  lost_rank,
  lost_node,
  lost_message,
  corrupted_value,
  exception,
  out_of_memory,
  signal
};
inline constexpr int fault_kind_count = 10;
std::string_view name_of(FaultKind kind);

/// One end of a link: `node N` or `gpu N`.
struct LinkEnd {
  enum class Kind : uint8_t { node, gpu };
  Kind kind = Kind::node;
  int64_t number = 0;
};

/// A fault: kind, place and time. The table of faults lists the fields of each kind.
struct FaultSpec {
  FaultKind kind = FaultKind::straggler;
  Given<int64_t> rank;
  Given<RankSelection> ranks;
  Given<Instant> at;
  Given<Time> duration;  ///< key `for`; absent: to the end
  Given<double> slowdown;
  std::vector<Placed<LinkEnd>> between;
  Given<double> bandwidth;  ///< the remaining share, as a fraction
  Given<Time> latency;      ///< added
  Given<int64_t> node;
  Given<int64_t> call;      ///< which submission of that rank
  Given<std::string> hook;  ///< at whose beginning it strikes
  Given<std::string> signal;
  SourcePlace place{};
};

}  // namespace lockstep
