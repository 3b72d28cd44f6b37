// The collectives of a rank one after the other, with their element types.
#include "cli/render/call_list.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/render/group_names.hpp"
#include "properties/diagnosis/call_numbers.hpp"
#include "properties/diagnosis/calls.hpp"

namespace lockstep::cli {

namespace {

constexpr size_t most_lines = 40;
constexpr size_t most_in_json = 1000;
/// Groups are found by looking at every rank.
constexpr int32_t most_ranks = 4096;

ListedCalls listed(const Call& call, const std::string& group, int64_t number,
                   const Journal& journal) {
  ListedCalls entry;
  entry.group = group;
  entry.first = number;
  entry.operation = name_of(call.kind);
  if (call.kind != OpKind::barrier && call.kind != OpKind::new_group) {
    entry.dtype = name_of(call.dtype);
    entry.elements = call.bytes / size_of(call.dtype);
  }
  entry.text = text_of(call);
  entry.place = journal.sites.place(call.site);
  return entry;
}

std::string numbers_text(int64_t first, int64_t next) {
  return next == first + 1 ? fmt::format("{}", first) : fmt::format("{}-{}", first, next - 1);
}

}  // namespace

std::vector<ListedCalls> listed_calls(const Rehearsal& rehearsal, size_t most) {
  std::vector<ListedCalls> all;
  if (!rehearsal.run.result.journal) {
    return all;
  }
  const Journal& journal = *rehearsal.run.result.journal;
  if (journal.ranks() > most_ranks) {
    return all;
  }
  const GroupNames names(journal);
  for (const Communicator& communicator : communicators(journal)) {
    if (!communicator.members.contains(0)) {
      continue;
    }
    const size_t begin = all.size();
    const CallNumbers numbers(journal, 0, communicator.key);
    int64_t position = 0;
    for (const Call& call : calls_of(journal, 0, communicator.key)) {
      ListedCalls entry = listed(call, names[communicator.key], numbers.of(position++), journal);
      const bool repeats = all.size() > begin && all.back().text == entry.text &&
                           all.back().place == entry.place && all.back().next() == entry.first;
      if (repeats) {
        ++all.back().count;
      } else if (all.size() - begin == most) {
        break;
      } else {
        all.push_back(std::move(entry));
      }
    }
  }
  return all;
}

std::string render_calls(const Rehearsal& rehearsal) {
  const std::vector<ListedCalls> calls = listed_calls(rehearsal, most_lines);
  std::string text = calls.empty() ? "" : "\nCollectives of rank 0\n";
  size_t width = 0;
  size_t group_width = 10;
  for (const ListedCalls& entry : calls) {
    width = std::max(width, entry.text.size());
    group_width = std::max(group_width, entry.group.size());
  }
  const ListedCalls* before = nullptr;
  for (const ListedCalls& entry : calls) {
    const bool goes_on = before != nullptr && before->group == entry.group;
    if (goes_on && before->next() < entry.first) {
      text += fmt::format("  {:<{}} {:<12} repeat earlier ones, and were not simulated\n",
                          entry.group, group_width, numbers_text(before->next(), entry.first));
    }
    text += fmt::format("  {:<{}} {:<12} {:<{}}  {}\n", entry.group, group_width,
                        numbers_text(entry.first, entry.next()), entry.text, width, entry.place);
    before = &entry;
  }
  return text;
}

Json calls_json(const Rehearsal& rehearsal) {
  Json all = Json::array();
  for (const ListedCalls& entry : listed_calls(rehearsal, most_in_json)) {
    Json one;
    one["group"] = entry.group;
    one["first"] = entry.first;
    one["count"] = entry.count;
    one["operation"] = entry.operation;
    one["dtype"] = entry.dtype.empty() ? Json(nullptr) : Json(entry.dtype);
    one["elements"] = entry.elements;
    one["place"] = entry.place;
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace lockstep::cli
