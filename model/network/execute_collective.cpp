#include <algorithm>
#include <cstring>
#include <vector>

#include "model/core/ensure.hpp"
#include "model/network/execute.hpp"

namespace lockstep {

namespace {

// Reads the bytes as a different type, as a member of a different type reads a peer's message.
Values reinterpret(const Values& values, DType dtype) {
  if (values.dtype() == dtype) {
    return values;
  }
  Values result(dtype, values.byte_size().count() / size_of(dtype));
  std::memcpy(result.bytes().data(), values.bytes().data(), result.bytes().size());
  return result;
}

Values reduced(const Op& op, AverageOrder order, const CollectiveInputs& inputs) {
  const bool alike = std::all_of(inputs.contributions.begin(), inputs.contributions.end(),
                                 [&](const Values* part) { return part->dtype() == op.dtype; });
  if (alike) {
    return reduce(op.reduction, order, inputs.contributions);
  }
  std::vector<Values> parts;
  for (const Values* part : inputs.contributions) {
    parts.push_back(reinterpret(*part, op.dtype));
  }
  std::vector<const Values*> pointers;
  for (const Values& part : parts) {
    pointers.push_back(&part);
  }
  return reduce(op.reduction, order, pointers);
}

Values concatenated(DType dtype, std::span<const Values* const> parts) {
  int64_t elements = 0;
  for (const Values* part : parts) {
    elements += reinterpret(*part, dtype).size();
  }
  Values whole(dtype, elements);
  int64_t begin = 0;
  for (const Values* part : parts) {
    const Values typed = reinterpret(*part, dtype);
    whole.assign(begin, typed);
    begin += typed.size();
  }
  return whole;
}

int64_t begin_of_part(std::span<const int64_t> splits, int64_t member) {
  int64_t begin = 0;
  for (int64_t i = 0; i < member; ++i) {
    begin += splits[static_cast<size_t>(i)];
  }
  return begin;
}

Values own_part(const Values& whole, std::span<const int64_t> splits, int64_t self,
                int64_t members) {
  if (!splits.empty()) {
    return whole.slice(begin_of_part(splits, self), splits[static_cast<size_t>(self)]);
  }
  const int64_t part = whole.size() / members;
  return whole.slice(self * part, part);
}

Values exchanged(const Op& op, const CollectiveInputs& inputs,
                 const std::vector<std::span<const int64_t>>& splits_of_members) {
  const auto members = static_cast<int64_t>(inputs.contributions.size());
  std::vector<Values> parts;
  for (int64_t member = 0; member < members; ++member) {
    const auto index = static_cast<size_t>(member);
    // The first half of the splits says what is sent to each.
    const auto all =
        splits_of_members.empty() ? std::span<const int64_t>{} : splits_of_members[index];
    const Values* const given = inputs.contributions[index];
    parts.push_back(given->empty()  // it sends nothing to anybody
                        ? Values(op.dtype, 0)
                        : own_part(reinterpret(*given, op.dtype), all.first(all.size() / 2),
                                   inputs.self, members));
  }
  std::vector<const Values*> pointers;
  for (const Values& part : parts) {
    pointers.push_back(&part);
  }
  return concatenated(op.dtype, pointers);
}

bool complete(OpKind kind, const CollectiveInputs& inputs) {
  if (kind == OpKind::broadcast || kind == OpKind::scatter) {
    return !inputs.contributions[static_cast<size_t>(inputs.root)]->empty();
  }
  return std::none_of(inputs.contributions.begin(), inputs.contributions.end(),
                      [](const Values* part) { return part->empty(); });
}

// Who has nothing to send still takes part.
bool complete_exchange(const CollectiveInputs& inputs,
                       const std::vector<std::span<const int64_t>>& splits_of_members) {
  for (size_t member = 0; member < inputs.contributions.size(); ++member) {
    const auto all =
        splits_of_members.empty() ? std::span<const int64_t>{} : splits_of_members[member];
    const auto sent = all.first(all.size() / 2);
    const bool sends_nothing =
        !sent.empty() && std::ranges::all_of(sent, [](int64_t part) { return part == 0; });
    if (inputs.contributions[member]->empty() && !sends_nothing) {
      return false;
    }
  }
  return true;
}

}  // namespace

Values collective_whole(const Op& op, AverageOrder order, const CollectiveInputs& inputs) {
  if (!complete(op.kind, inputs)) {
    return {};
  }
  switch (op.kind) {
    case OpKind::all_reduce:
    case OpKind::reduce:
    case OpKind::reduce_scatter: return reduced(op, order, inputs);
    case OpKind::all_gather:
    case OpKind::gather: return concatenated(op.dtype, inputs.contributions);
    case OpKind::broadcast:
    case OpKind::scatter:
      return reinterpret(*inputs.contributions[static_cast<size_t>(inputs.root)], op.dtype);
    default: return {};
  }
}

bool gives_whole(OpKind kind) {
  return kind == OpKind::all_reduce || kind == OpKind::all_gather || kind == OpKind::broadcast;
}

Values collective_share(const Op& op, const Values& whole, const CollectiveInputs& inputs) {
  const auto members = static_cast<int64_t>(inputs.contributions.size());
  if (whole.empty()) {
    return {};
  }
  switch (op.kind) {
    case OpKind::reduce:
    case OpKind::gather: return inputs.self == inputs.root ? whole : Values();
    case OpKind::reduce_scatter: return own_part(whole, op.list().splits, inputs.self, members);
    case OpKind::scatter: return own_part(whole, {}, inputs.self, members);
    default: return gives_whole(op.kind) ? whole : Values();
  }
}

Values collective_result(const Op& op, AverageOrder order, const CollectiveInputs& inputs,
                         const std::vector<std::span<const int64_t>>& splits_of_members) {
  if (op.kind == OpKind::all_to_all) {
    return complete_exchange(inputs, splits_of_members) ? exchanged(op, inputs, splits_of_members)
                                                        : Values();
  }
  return collective_share(op, collective_whole(op, order, inputs), inputs);
}

}  // namespace lockstep
