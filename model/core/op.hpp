#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <type_traits>

#include "model/core/buffer.hpp"
#include "model/core/ids.hpp"
#include "model/core/kernel.hpp"
#include "model/core/site.hpp"
#include "model/core/units.hpp"
#include "model/core/values.hpp"

namespace lockstep {

/// Everything that a rank may do to the world.
enum class OpKind : uint8_t {
  compute,     ///< a Kernel on the stream's device
  copy,        ///< between devices of one rank: reads[0] to writes[0]; runs on the stream it names
  all_reduce,  ///< in place: writes[0]
  reduce_scatter,  ///< reads[0] (all parts) to writes[0] (own part); splits: elements per member
  all_gather,      ///< reads[0] (own part) to writes[0] (all parts in member order)
  broadcast,       ///< writes[0] of all gets that of the root
  reduce,          ///< as all_reduce, the result on the root only; others keep theirs
  gather,          ///< reads[0] of all to writes[0] of the root
  scatter,         ///< reads[0] of the root, in equal parts, to writes[0]
  all_to_all,      ///< reads[0] to writes[0]; splits: elements sent to each, then got from each
  send,            ///< reads[0] to `peer`
  recv,            ///< from `peer` (or any_rank) to writes[0]
  barrier,         ///< all members have come
  new_group,  ///< a collective of `group`; members: splits (global ranks), or by flag_color peer =
              ///< colour
  host,       ///< `work` picoseconds of the lane's own thread
  event,      ///< a mark in a stream: settles when all before it has finished
};
inline constexpr int op_kind_count = 16;
std::string_view name_of(OpKind kind);

constexpr bool is_collective(OpKind kind) {
  return (kind >= OpKind::all_reduce && kind <= OpKind::all_to_all) || kind == OpKind::barrier ||
         kind == OpKind::new_group;
}
constexpr bool is_point_to_point(OpKind kind) {
  return kind == OpKind::send || kind == OpKind::recv;
}
constexpr bool is_communication(OpKind kind) {
  return is_collective(kind) || is_point_to_point(kind);
}
constexpr bool has_root(OpKind kind) {
  return kind == OpKind::broadcast || kind == OpKind::reduce || kind == OpKind::gather ||
         kind == OpKind::scatter;
}
constexpr bool reduces(OpKind kind) {
  return kind == OpKind::all_reduce || kind == OpKind::reduce_scatter || kind == OpKind::reduce;
}

/// `peer` of a receive that takes whatever comes first.
inline constexpr int32_t any_rank = -1;
/// Flag of a new_group that names its members by colour.
inline constexpr uint8_t flag_color = 1;
/// `peer` of such a new_group whose rank joins no group of its colour (as ncclCommSplit's NOCOLOR).
inline constexpr int32_t no_color = -1;

/// The lists of an operation. The memory belongs to the caller and is valid only during `submit`.
struct OpLists {
  std::span<const Ticket> after;  ///< device order: all these finish before the op starts
  std::span<const Slice> reads;
  std::span<const Slice> writes;
  std::span<const int64_t> splits;  ///< elements, or global ranks of a new group
  std::span<const double> scalars;  ///< of a kernel
};

/// One operation: a plain value. Ranks in `peer` are global ranks.
struct Op {
  OpKind kind = OpKind::event;
  DType dtype = DType::uint8;
  Reduction reduction = Reduction::sum;
  uint8_t flags = 0;
  StreamId stream{};
  Kernel kernel = Kernel::timed;
  GroupId group{};   ///< communicator; of new_group: the parent
  int32_t peer = 0;  ///< peer, root, or colour
  int32_t tag = 0;   ///< of point-to-point; layer of a layer kernel; new GroupId of new_group
  SiteId site{};
  Bytes bytes{};     ///< payload: of all_gather and gather this rank's part, else all of it
  int64_t work = 0;  ///< picoseconds (timed, host) or FLOPs
  const OpLists* lists = nullptr;  ///< null = all lists empty; valid only during submit

  int64_t elements() const { return bytes.count() / size_of(dtype); }
  const OpLists& list() const;
};
static_assert(sizeof(Op) <= 64 && std::is_trivially_copyable_v<Op>);

inline constexpr OpLists empty_lists{};
inline const OpLists& Op::list() const { return lists == nullptr ? empty_lists : *lists; }

}  // namespace lockstep
