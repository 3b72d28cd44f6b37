#include "model/strategy/exchange/distributed_checkpoint.hpp"

#include <algorithm>

#include "model/strategy/exchange/object_exchange.hpp"

namespace lockstep {

namespace {

constexpr int64_t counter_bytes = 4;
// What pickles of the planner's objects have for each entry beside its name, measured with PyTorch
// 2.11 (docs/oracle.md).
constexpr int64_t plan_begins = 1297;
constexpr int64_t plan_of_parameter = 142;
constexpr int64_t plan_of_state = 196;
constexpr int64_t plan_of_option = 43;
constexpr int64_t storage_of_plan = 100;
constexpr int64_t result_of_item = 102;
constexpr int64_t metadata_of_tensor = 142;
constexpr int64_t metadata_of_part = 38;
constexpr int64_t metadata_of_option = 80;

}  // namespace

CheckpointParts::CheckpointParts(int32_t ranks, int32_t shards)
    : shards_(shards), ranks_(static_cast<size_t>(ranks)) {}

int64_t CheckpointParts::Item::plan_entry() const {
  switch (kind) {
    case Kind::parameter: return plan_of_parameter + name_length;
    case Kind::option: return plan_of_option;
    default: return plan_of_state + name_length;
  }
}

void CheckpointParts::add_parameter(int64_t rows, Bytes row_bytes, size_t name_length) {
  items_.push_back({Kind::parameter, rows, row_bytes, static_cast<int64_t>(name_length)});
}

void CheckpointParts::add_state(int64_t rows, Bytes row_bytes, size_t name_length) {
  items_.push_back({Kind::state, rows, row_bytes, static_cast<int64_t>(name_length)});
}

void CheckpointParts::add_counter(size_t name_length) {
  items_.push_back({Kind::counter, 1, Bytes(counter_bytes), static_cast<int64_t>(name_length)});
}

void CheckpointParts::add_options(int64_t count) {
  items_.insert(items_.end(), static_cast<size_t>(count), {Kind::option, 1, Bytes(0), 0});
}

// torch.chunk: parts of equal size, of which the last ones may be smaller or missing.
Bytes CheckpointParts::part_bytes(const Item& item, int32_t shard) const {
  const int64_t part = (item.rows + shards_ - 1) / shards_;
  const int64_t first = std::min(item.rows, part * shard);
  return item.row_bytes * (std::min(item.rows, first + part) - first);
}

CheckpointParts::Written& CheckpointParts::least_loaded(int32_t first, int32_t step) {
  auto least = static_cast<size_t>(first);
  for (size_t rank = least; rank < ranks_.size(); rank += static_cast<size_t>(step)) {
    least = ranks_[rank].planned < ranks_[least].planned ? rank : least;
  }
  return ranks_[least];
}

// The plans of ranks are gone through one after the other, and what an earlier one holds as well
// has been decided with it.
void CheckpointParts::assign() {
  for (int32_t shard = 0; shard < shards_; ++shard) {
    for (const Item& item : items_) {
      const Bytes bytes = item.is_cut() ? part_bytes(item, shard) : Bytes{};
      if (item.is_cut() ? bytes == Bytes{} : shard > 0) {
        continue;
      }
      Written& writer = item.is_cut() ? least_loaded(shard, shards_) : least_loaded(0, 1);
      writer.planned += std::max<int64_t>(1, (item.row_bytes * item.rows).count());
      writer.bytes += bytes;
      writer.plan_entries += item.plan_entry();
      writer.result_entries += result_of_item + item.name_length;
      ++parts_;
    }
  }
}

std::shared_ptr<const std::vector<Bytes>> CheckpointParts::bytes_by_rank() const {
  std::vector<Bytes> bytes;
  for (const Written& each : ranks_) {
    bytes.push_back(each.bytes);
  }
  return std::make_shared<const std::vector<Bytes>>(std::move(bytes));
}

// Rank 0 holds a part of every tensor.
Bytes CheckpointParts::local_plan() const {
  int64_t bytes = plan_begins;
  for (const Item& item : items_) {
    bytes += item.plan_entry();
  }
  return Bytes(bytes);
}

Bytes CheckpointParts::global_plan() const {
  int64_t longest = 0;
  for (const Written& each : ranks_) {
    longest = std::max(longest, each.plan_entries);
  }
  return Bytes(plan_begins + storage_of_plan + longest);
}

Bytes CheckpointParts::write_results() const {
  int64_t longest = 0;
  for (const Written& each : ranks_) {
    longest = std::max(longest, each.result_entries);
  }
  return Bytes(std::max<int64_t>(longest, 1));
}

Bytes CheckpointParts::metadata() const {
  int64_t bytes = metadata_of_part * parts_;
  for (const Item& item : items_) {
    const bool is_option = item.kind == Kind::option;
    bytes +=
        is_option ? metadata_of_option - metadata_of_part : metadata_of_tensor + item.name_length;
  }
  return Bytes(std::max<int64_t>(bytes, 1));
}

// state_dict_saver.py: reduce_scatter of plans and all_reduce of results, made of objects.
Task<Bytes> save_parts(Rank& rank, const CheckpointParts& parts, CheckpointRequest request,
                       SiteId site) {
  const ObjectExchange exchange{world_group, rank.world_size(), 0, site};
  co_await gather_pickled(rank, exchange, parts.local_plan());
  co_await scatter_pickled(rank, exchange, parts.global_plan());
  const Bytes own = parts.bytes_of(rank.id());
  co_await write_file(rank, own, request, rank.place().local_world_size, site);
  co_await gather_pickled(rank, exchange, parts.write_results());
  co_await broadcast_pickled(rank, exchange, parts.metadata());
  co_return own;
}

}  // namespace lockstep
