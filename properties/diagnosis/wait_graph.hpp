#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "properties/diagnosis/operation_table.hpp"
#include "properties/diagnosis/progress.hpp"

namespace lockstep {

/// Something that waits, or that is waited for.
struct WaitNode {
  enum class Kind : uint8_t {
    lane,       ///< a host thread; `operation` unused
    operation,  ///< submitted and not done
    call,       ///< a collective as a whole: `operation` is a member's part of it
  };
  Kind kind = Kind::lane;
  int32_t rank = 0;
  LaneId lane{};
  size_t operation = OperationTable::none;
  std::vector<uint32_t> waits_for;  ///< indices of nodes
  bool ended = false;               ///< a lane that does nothing more
};

/// Nodes that wait for each other and for nobody else, or a single one that waits for nothing and
/// yet is not done: the reason of a hang, from which all other waiting follows.
struct WaitKnot {
  std::vector<uint32_t> cycle;  ///< nodes, each waiting for the next and the last for the first;
                                ///< of a single one just that
  std::vector<uint32_t> nodes;  ///< all of the knot
  RankSet ranks;
};

/// Who waits for whom at the end of a run. An operation waits for the one before it in its queue,
/// for its `after` list, and for the other members of its call or the other end of its message; a
/// lane for the tickets it settles; a promise for the other lanes of its rank.
class WaitGraph {
 public:
  WaitGraph(const OperationTable& table, const RunProgress& progress);

  const std::vector<WaitNode>& nodes() const { return nodes_; }
  /// The strongly connected components that wait for nothing outside (Boost.Graph), by their
  /// smallest node. Lanes that ended are included only when something waits for them.
  std::vector<WaitKnot> knots() const;
  /// Lanes and operations that wait, directly or not, for this knot.
  RankSet ranks_waiting_for(const WaitKnot& knot) const;

 private:
  class Builder;
  std::vector<WaitNode> nodes_;
};

}  // namespace lockstep
