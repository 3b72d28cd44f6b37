#include "properties/invariants/matched_parts.hpp"

#include <fmt/core.h>

#include <map>
#include <optional>

#include "properties/diagnosis/call_numbers.hpp"
#include "properties/diagnosis/gloo_outcome.hpp"
#include "properties/diagnosis/operation_table.hpp"
#include "properties/diagnosis/remedy.hpp"

namespace lockstep {

namespace {

/// One rank sends something that its receiver does not expect.
struct Misfit {
  size_t sender = 0;  ///< operations
  size_t receiver = 0;
  std::string sent;
  std::string expected;
  int64_t bytes_sent = 0;
  int64_t bytes_expected = 0;
};

std::string amount_text(DType dtype, int64_t elements) {
  return fmt::format("{} [{}]", name_of(dtype), elements);
}

bool is_concerned(const Row& row) {
  return row.row == RowKind::op && (row.kind == OpKind::send || row.kind == OpKind::all_to_all);
}

// Most runs have neither messages nor all_to_all and need no table.
bool has_parts(const Journal& journal) { return journal.has_row(is_concerned); }

std::optional<Misfit> message_misfit(const OperationTable& table, size_t send) {
  const size_t receive = table.partner(send);
  if (receive == OperationTable::none) {
    return std::nullopt;
  }
  const Row& sent = table[send].row;
  const Row& expected = table[receive].row;
  if (sent.dtype == expected.dtype && sent.bytes == expected.bytes) {
    return std::nullopt;
  }
  return Misfit{send,
                receive,
                amount_text(sent.dtype, sent.bytes / size_of(sent.dtype)),
                amount_text(expected.dtype, expected.bytes / size_of(expected.dtype)),
                sent.bytes,
                expected.bytes};
}

std::vector<int32_t> members_in_order(const OperationTable& table, const Operation& operation) {
  const auto& groups = table.journal().groups[static_cast<size_t>(operation.rank)];
  const size_t group = operation.row.group.value;
  return group != 0 && group < groups.size() ? groups[group].members.ranks()
                                             : table.members(operation.communicator).ranks();
}

RowLists lists_of(const OperationTable& table, size_t number) {
  const Operation& operation = table[number];
  return table.journal().lane(operation.rank, operation.lane.value).lists_of(operation.row);
}

std::optional<Misfit> exchange_misfit(const OperationTable& table, size_t first) {
  const Operation& operation = table[first];
  const auto& call = table.call(operation.communicator, operation.position);
  if (call.front() != first) {
    return std::nullopt;  // reported once per call
  }
  const std::vector<int32_t> members = members_in_order(table, operation);
  std::map<int32_t, size_t> part_of;
  for (const size_t part : call) {
    if (table[part].row.kind == OpKind::all_to_all) {
      part_of[table[part].rank] = part;
    }
  }
  for (size_t from = 0; from < members.size(); ++from) {
    for (size_t to = 0; to < members.size(); ++to) {
      const auto sender = part_of.find(members[from]);
      const auto receiver = part_of.find(members[to]);
      if (sender == part_of.end() || receiver == part_of.end()) {
        continue;
      }
      const RowLists sent = lists_of(table, sender->second);
      const RowLists expected = lists_of(table, receiver->second);
      const size_t splits = 2 * members.size();
      if (sent.splits.size() == splits && expected.splits.size() == splits &&
          sent.splits[to] != expected.splits[members.size() + from]) {
        const auto elements_expected = expected.splits[members.size() + from];
        const DType of_sender = table[sender->second].row.dtype;
        const DType of_receiver = table[receiver->second].row.dtype;
        return Misfit{sender->second,
                      receiver->second,
                      amount_text(of_sender, sent.splits[to]),
                      amount_text(of_receiver, elements_expected),
                      sent.splits[to] * size_of(of_sender),
                      elements_expected * size_of(of_receiver)};
      }
    }
  }
  return std::nullopt;
}

std::string consequence(const Misfit& misfit, const Operation& sender, const Operation& receiver,
                        bool over_gloo) {
  if (!over_gloo) {
    return "what arrives is cut, padded with old data, or never completes";
  }
  if (misfit.bytes_sent > misfit.bytes_expected) {
    return fmt::format(
        "{} of rank {} (SIGABRT) within milliseconds: more bytes come than were asked for; rank {} "
        "gets no error from this {}",
        gloo_ends_process, receiver.rank, sender.rank, name_of(sender.row.kind));
  }
  return fmt::format("{}: rank {} {}", gloo_goes_on, receiver.rank,
                     misfit.bytes_sent < misfit.bytes_expected
                         ? "goes on, and the rest of its data keeps what it held"
                         : "takes the bytes as its own type");
}

Finding finding_of(const OperationTable& table, const Misfit& misfit, bool over_gloo) {
  const Operation& sender = table[misfit.sender];
  const Operation& receiver = table[misfit.receiver];
  const bool message = sender.row.kind == OpKind::send;
  Finding finding =
      lockstep::finding_of("LS104", Level::error,
                           fmt::format("rank {} sends {} to rank {}, which expects {}", sender.rank,
                                       misfit.sent, receiver.rank, misfit.expected));
  finding.ranks = RankSet({sender.rank, receiver.rank});
  finding.group = sender.communicator == 0 ? "world" : table.members(sender.communicator).phrase();
  finding.call =
      message ? 0
              : CallNumbers(table.journal(), sender.rank, sender.communicator).of(sender.position);
  finding.sites = {{sender.row.site, SiteRole::subject, fmt::format("rank {}", sender.rank)}};
  if (receiver.row.site != sender.row.site) {
    finding.sites.push_back(
        {receiver.row.site, SiteRole::other, fmt::format("rank {}", receiver.rank)});
  }
  const std::string kind(name_of(sender.row.kind));
  finding.did = {
      {RankSet{sender.rank}, finding.call, kind + " " + misfit.sent, sender.row.site},
      {RankSet{receiver.rank}, finding.call,
       fmt::format("{} {}", name_of(receiver.row.kind), misfit.expected), receiver.row.site}};
  finding.why = {"the sizes or dtypes differ",
                 no_site,
                 {{RankSet{sender.rank}, misfit.sent}, {RankSet{receiver.rank}, misfit.expected}}};
  finding.follows = {consequence(misfit, sender, receiver, over_gloo)};
  finding.fix = remedy_for("LS104", {kind, "", false});
  return finding;
}

}  // namespace

std::vector<Finding> matched_parts(const RunResult& run, bool over_gloo) {
  if (run.journal == nullptr || !has_parts(*run.journal)) {
    return {};
  }
  const OperationTable table(*run.journal, TabledOperations::parts);
  std::map<std::pair<SiteId, SiteId>, Misfit> first;
  for (size_t number = 0; number < table.size(); ++number) {
    std::optional<Misfit> misfit;
    if (table[number].row.kind == OpKind::send) {
      misfit = message_misfit(table, number);
    } else if (table[number].row.kind == OpKind::all_to_all) {
      misfit = exchange_misfit(table, number);
    }
    if (misfit) {
      first.try_emplace({table[misfit->sender].row.site, table[misfit->receiver].row.site},
                        *misfit);
    }
  }
  std::vector<Finding> findings;
  for (const auto& [sites, misfit] : first) {
    findings.push_back(finding_of(table, misfit, over_gloo));
  }
  sort_findings(findings);
  return findings;
}

}  // namespace lockstep
