#include "properties/diagnosis/gloo_outcome.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace lockstep {

namespace {

using Sizes = std::vector<int64_t>;

int64_t rounded_up(int64_t number, int64_t step) { return (number + step - 1) / step * step; }

// How Gloo's ring cuts a buffer (gloo/allreduce.cc): at least two segments a member, as many for
// each, none longer than 1 MiB.
struct Segments {
  int64_t members;
  int64_t total;
  int64_t count;
  int64_t size;

  Segments(int64_t of_members, const GlooCall& call) : members(of_members), total(call.bytes) {
    constexpr int64_t longest = int64_t{1} << 20;
    const int64_t element = std::max<int64_t>(1, call.element_size);
    const int64_t size_max = std::max<int64_t>(1, longest / element) * element;
    count = rounded_up(std::max((total + size_max - 1) / size_max, 2 * members), members);
    size = rounded_up((total + count - 1) / count, element);
  }

  // The messages of the segments from those of member `first` on: all but one member's share.
  // Segments beyond the end of the buffer are not sent.
  void add_messages(int64_t first, Sizes& messages) const {
    const int64_t share = count / members;
    for (int64_t i = 0; i < count - share; ++i) {
      const int64_t offset = (first * share + i) % count * size;
      if (offset < total) {
        messages.push_back(std::min(size, total - offset));
      }
    }
  }
};

// Members send to the one before them: first sums, then (of an all_reduce) results.
GlooOutcome ring_outcome(std::span<const GlooCall> calls, int64_t self) {
  const auto members = static_cast<int64_t>(calls.size());
  const int64_t from = (self + 1) % members;
  const Segments own(members, calls[static_cast<size_t>(self)]);
  const Segments theirs(members, calls[static_cast<size_t>(from)]);
  Sizes expected;
  Sizes sent;
  own.add_messages(self + 2, expected);
  theirs.add_messages(from + 1, sent);
  if (calls[static_cast<size_t>(self)].kind == OpKind::all_reduce) {
    own.add_messages(self + 1, expected);
    theirs.add_messages(from, sent);
  }
  const auto [sent_at, expected_at] =
      std::mismatch(sent.begin(), sent.end(), expected.begin(), expected.end(),
                    [](int64_t came, int64_t room) { return came <= room; });
  if (sent_at != sent.end() && expected_at != expected.end()) {
    return GlooOutcome::aborts;
  }
  return sent.size() == expected.size() ? GlooOutcome::completes : GlooOutcome::waits;
}

// Gloo's broadcast is a binomial tree over the members counted from the root.
int64_t parent_of(int64_t member, int64_t root, int64_t members) {
  const int64_t own = (member - root + members) % members;
  int64_t highest = 1;
  while (highest * 2 <= own) {
    highest *= 2;
  }
  return (own - highest + root) % members;
}

int64_t sender_to(OpKind kind, int64_t member, int64_t root, int64_t members) {
  switch (kind) {
    case OpKind::broadcast: return parent_of(member, root, members);
    case OpKind::scatter: return root;
    default: return (member + members - 1) % members;  // all_gather: a ring
  }
}

GlooOutcome direct_outcome(std::span<const GlooCall> calls, int64_t self) {
  const auto at = [&calls](int64_t member) { return calls[static_cast<size_t>(member)]; };
  const auto members = static_cast<int64_t>(calls.size());
  const GlooCall own = at(self);
  const bool takes_from_all = own.kind == OpKind::all_to_all || own.kind == OpKind::gather;
  if (takes_from_all) {
    const bool takes = own.kind == OpKind::all_to_all || self == own.root;
    const bool too_long =
        std::ranges::any_of(calls, [&own](const GlooCall& call) { return call.bytes > own.bytes; });
    return takes && too_long ? GlooOutcome::aborts : GlooOutcome::completes;
  }
  if (has_root(own.kind) && self == own.root) {
    return GlooOutcome::completes;
  }
  const int64_t from = sender_to(own.kind, self, own.root, members);
  return at(from).bytes > own.bytes ? GlooOutcome::aborts : GlooOutcome::completes;
}

bool is_ring_of_sums(OpKind kind) { return reduces(kind); }

// Who waits for others in such a call, once it has sent.
bool hears_from_others(const GlooCall& call, int64_t self) {
  return !(has_root(call.kind) && call.kind != OpKind::reduce && self == call.root) &&
         call.kind != OpKind::gather && call.kind != OpKind::scatter;
}

std::string aborted_text(const RankSet& aborted, const RankSet& losing) {
  std::string text = fmt::format(
      "Gloo ends the process of {} (SIGABRT) within milliseconds: more bytes come than "
      "were asked for",
      aborted.phrase());
  if (!losing.empty()) {
    text += fmt::format("; {} then {} an error (Connection reset by peer)", losing.phrase(),
                        losing.size() == 1 ? "raises" : "raise");
  }
  return text;
}

}  // namespace

std::vector<GlooOutcome> gloo_outcomes(std::span<const GlooCall> calls) {
  const auto members = static_cast<int64_t>(calls.size());
  const GlooCall& first = calls.front();
  const bool meet = std::ranges::all_of(calls, [&first](const GlooCall& call) {
    return call.kind == first.kind && (!has_root(call.kind) || call.root == first.root);
  });
  if (!meet) {
    return std::vector<GlooOutcome>(calls.size(), GlooOutcome::waits);
  }
  std::vector<GlooOutcome> outcomes;
  for (int64_t self = 0; self < members; ++self) {
    outcomes.push_back(is_ring_of_sums(first.kind) ? ring_outcome(calls, self)
                                                   : direct_outcome(calls, self));
  }
  const bool aborts = std::ranges::count(outcomes, GlooOutcome::aborts) > 0;
  const bool waits = std::ranges::count(outcomes, GlooOutcome::waits) > 0;
  for (int64_t self = 0; self < members; ++self) {
    GlooOutcome& own = outcomes[static_cast<size_t>(self)];
    if (own == GlooOutcome::aborts) {
      continue;
    }
    if (is_ring_of_sums(first.kind) || first.kind == OpKind::all_gather ||
        first.kind == OpKind::all_to_all) {
      own = aborts ? GlooOutcome::loses_peer : waits ? GlooOutcome::waits : own;
    } else if (hears_from_others(calls[static_cast<size_t>(self)], self)) {
      const auto parent = static_cast<size_t>(sender_to(first.kind, self, first.root, members));
      own = outcomes[parent] == GlooOutcome::aborts ? GlooOutcome::loses_peer : own;
    }
  }
  return outcomes;
}

std::string gloo_outcome_text(const Divergence& divergence) {
  const std::vector<int32_t> members = divergence.members.ranks();
  std::vector<GlooCall> calls;
  for (const int32_t rank : members) {
    const auto party = std::ranges::find_if(
        divergence.parties, [rank](const Party& known) { return known.ranks.contains(rank); });
    if (party == divergence.parties.end() || !party->call) {
      return {};
    }
    const Call& call = *party->call;
    const auto root = std::ranges::find(members, call.root) - members.begin();
    calls.push_back({call.kind, call.bytes, size_of(call.dtype), root});
  }
  if (std::ranges::any_of(calls, [](const GlooCall& call) {
        return call.kind == OpKind::barrier || call.kind == OpKind::new_group;
      })) {
    return {};
  }
  const std::vector<GlooOutcome> outcomes = gloo_outcomes(calls);
  RankSet aborted;
  RankSet losing;
  for (size_t member = 0; member < members.size(); ++member) {
    if (outcomes[member] == GlooOutcome::aborts) {
      aborted.add(members[member]);
    } else if (outcomes[member] == GlooOutcome::loses_peer) {
      losing.add(members[member]);
    }
  }
  if (!aborted.empty()) {
    return aborted_text(aborted, losing);
  }
  if (std::ranges::count(outcomes, GlooOutcome::waits) > 0) {
    return {};
  }
  return fmt::format(
      "{}: the call completes, and where less comes than was asked for the rest of the data keeps "
      "what it held",
      gloo_goes_on);
}

bool torch_does_not_wait(const Finding& finding) {
  return std::ranges::any_of(finding.follows, [](const std::string& line) {
    return line.starts_with(gloo_ends_process) || line.starts_with(gloo_goes_on);
  });
}

}  // namespace lockstep
