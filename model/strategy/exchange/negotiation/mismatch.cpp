#include "model/strategy/exchange/negotiation/mismatch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace lockstep {

namespace {

constexpr size_t most_listed = 8;  // ranks of a group; the message names as many
constexpr size_t numbers_before_ranks = 6;

/// Ranks that have handed over the same.
struct MismatchGroup {
  TensorRequest request;
  int64_t ranks = 0;
  std::vector<int32_t> listed{};  ///< the first of them
};

// Numbers that were damaged on the way give nothing.
std::optional<std::vector<MismatchGroup>> mismatch_groups(const TensorResponse& response,
                                                          std::span<const int32_t> members) {
  const std::vector<int64_t>& numbers = response.parts;
  std::vector<MismatchGroup> groups;
  for (size_t at = 0; at < numbers.size();) {
    const size_t left = numbers.size() - at;
    if (left < numbers_before_ranks || numbers[at] >= dtype_count ||
        numbers[at + 2] > static_cast<int64_t>(Reduction::max)) {
      return std::nullopt;
    }
    MismatchGroup& group = groups.emplace_back();
    group.request.name = response.request.name;
    group.request.dtype = static_cast<DType>(numbers[at]);
    group.request.elements = numbers[at + 1];
    group.request.reduction = static_cast<Reduction>(numbers[at + 2]);
    group.request.root = static_cast<int32_t>(numbers[at + 3]);
    group.request.shape = numbers[at + 4];
    group.ranks = numbers[at + 5];
    const auto listed = static_cast<size_t>(
        std::min({group.ranks, int64_t{most_listed}, static_cast<int64_t>(left)}));
    at += numbers_before_ranks;
    if (listed == 0 || at + listed > numbers.size()) {
      return std::nullopt;
    }
    for (size_t i = 0; i < listed; ++i, ++at) {
      if (numbers[at] >= std::ssize(members)) {
        return std::nullopt;
      }
      group.listed.push_back(members[static_cast<size_t>(numbers[at])]);
    }
  }
  return groups.empty() ? std::nullopt : std::optional(std::move(groups));
}

// "rank 1", "ranks 0, 2, 3", "ranks 0, 1 and 60 more".
std::string ranks_of_group(const MismatchGroup& group) {
  const int64_t more = group.ranks - std::ssize(group.listed);
  std::string text = group.ranks == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < group.listed.size(); ++i) {
    text += fmt::format("{}{}", i == 0 ? "" : ", ", group.listed[i]);
  }
  return more > 0 ? fmt::format("{} and {} more", text, more) : text;
}

template <class Get>
bool any_differs(const std::vector<MismatchGroup>& groups, Get get) {
  return std::ranges::any_of(groups, [&](const MismatchGroup& group) {
    return get(group.request) != get(groups.front().request);
  });
}

/// What the message says of each group: its type and size, and what else differs.
struct Told {
  bool elements = true;
  bool reduction = false;
  bool root = false;
  bool shape = false;  ///< nothing else does: only that it is another one is known
};

Told told_of(const std::vector<MismatchGroup>& groups, RequestKind kind) {
  Told told;
  told.elements = kind != RequestKind::all_gather;  // parts may have different lengths
  told.reduction = any_differs(groups, [](const TensorRequest& each) { return each.reduction; });
  told.root = any_differs(groups, [](const TensorRequest& each) { return each.root; });
  const bool types = any_differs(groups, [](const TensorRequest& each) { return each.dtype; });
  const bool sizes = any_differs(groups, [](const TensorRequest& each) { return each.elements; });
  told.shape = !told.reduction && !told.root && !types && !(sizes && told.elements);
  return told;
}

}  // namespace

std::vector<int64_t> numbers_of_mismatch(const std::map<int32_t, TensorRequest>& asked) {
  std::vector<std::pair<TensorRequest, std::vector<int32_t>>> groups;
  for (const auto& [member, request] : asked) {
    const auto same = std::ranges::find_if(
        groups, [&](const auto& group) { return fit_together(group.first, request); });
    if (same == groups.end()) {
      groups.push_back({request, {member}});
    } else {
      same->second.push_back(member);
    }
  }
  std::vector<int64_t> numbers;
  for (const auto& [request, members] : groups) {
    const size_t listed = std::min(members.size(), most_listed);
    numbers.insert(numbers.end(), {static_cast<int64_t>(request.dtype), request.elements,
                                   static_cast<int64_t>(request.reduction), int64_t{request.root},
                                   request.shape, std::ssize(members)});
    numbers.insert(numbers.end(), members.begin(),
                   members.begin() + static_cast<std::ptrdiff_t>(listed));
  }
  return numbers;
}

std::string mismatch_text(const std::string& name, const TensorResponse& response,
                          std::span<const int32_t> members) {
  std::string text = fmt::format("{}{}", negotiation_errors::mismatch, name);
  const auto groups = mismatch_groups(response, members);
  if (!groups) {
    return text + " differs in shape, type, reduction or root";
  }
  const Told told = told_of(*groups, response.request.name.kind);
  for (size_t i = 0; i < groups->size(); ++i) {
    const MismatchGroup& group = (*groups)[i];
    const TensorRequest& request = group.request;
    text += fmt::format("{}{}", i == 0 ? " is " : ", ", name_of(request.dtype));
    text += told.elements ? fmt::format(" [{}]", request.elements) : "";
    text += told.shape && i > 0 ? " of another shape" : "";
    text += told.reduction ? fmt::format(" reduced by {}", name_of(request.reduction)) : "";
    text += told.root ? fmt::format(" from rank {}", request.root) : "";
    text += " on " + ranks_of_group(group);
  }
  return text;
}

}  // namespace lockstep
