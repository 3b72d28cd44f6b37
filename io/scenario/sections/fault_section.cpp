#include <fmt/format.h>

#include "io/scenario/forms/section_forms.hpp"
#include "io/scenario/sections/sections.hpp"

namespace lockstep {
namespace {

constexpr double last_rank = static_cast<double>(maximum_ranks - 1);

std::vector<Field<FaultSpec>> common_fields() {
  return {
      field<&FaultSpec::rank>({"rank", "", "the rank that it affects", 0, last_rank}),
      field<&FaultSpec::ranks>({"ranks", "", "the ranks that it affects"}),
      field<&FaultSpec::at>({"at", "0", "when it begins"}),
      field<&FaultSpec::duration>({"for", "to the end", "how long it lasts"}),
  };
}

std::vector<Field<FaultSpec>> own_fields(FaultKind kind) {
  switch (kind) {
    case FaultKind::straggler:
      return {field<&FaultSpec::slowdown>({"slowdown", "required", "of compute", 1, 1e9})};
    case FaultKind::slow_data:
      return {field<&FaultSpec::slowdown>({"slowdown", "required", "of loading", 1, 1e9})};
    case FaultKind::slow_link:
      return {
          field<&FaultSpec::between>({"between", "required", "two of `node N`, `gpu N`"}),
          field<&FaultSpec::bandwidth, PercentForm>(
              {"bandwidth", "100 %", "the remaining share", 0, 1}),
          field<&FaultSpec::latency>({"latency", "0", "time added"}),
      };
    case FaultKind::lost_rank:
      return {field<&FaultSpec::call>(
          {"call", "none", "the operation before which the rank dies, from 1", 1, 1e15})};
    case FaultKind::lost_node:
      return {field<&FaultSpec::node>({"node", "required", "whose ranks end", 0, last_rank})};
    case FaultKind::lost_message:
    case FaultKind::corrupted_value:
      return {field<&FaultSpec::call>(
          {"call", "required", "which of the calls that it can affect, from 1", 1, 1e15})};
    case FaultKind::exception:
    case FaultKind::out_of_memory:
      return {field<&FaultSpec::hook, NameForm>({"hook", "training_step", "where it happens"})};
    case FaultKind::signal:
      return {field<&FaultSpec::signal>({"name", "required", "`SIGTERM`, `SIGUSR1`, .."}),
              field<&FaultSpec::hook, NameForm>({"hook", "where `at` is", "when it next begins"})};
  }
  return {};
}

void check_required(Reader& reader, const Mark& mark, const Node* arguments, FaultKind kind) {
  for (const Field<FaultSpec>& own : own_fields(kind)) {
    const bool given = arguments != nullptr && arguments->kind == Node::Kind::map &&
                       arguments->find(own.row.key) != nullptr;
    if (own.row.default_text == "required" && !given) {
      reader.fail(
          mark,
          fmt::format("`{}` needs `{}`", fault_names()[static_cast<size_t>(kind)], own.row.key),
          std::string(own.row.meaning));
    }
  }
}

void check_fault(Reader& reader, const Mark& mark, const FaultSpec& fault) {
  const std::string_view name = fault_names()[static_cast<size_t>(fault.kind)];
  if (fault.rank && fault.ranks) {
    reader.fail(mark, fmt::format("`{}` has `rank` and `ranks`", name), "keep one of the two");
  }
  const bool strikes_ranks =
      fault.kind != FaultKind::slow_link && fault.kind != FaultKind::lost_node;
  if (strikes_ranks && !fault.rank && !fault.ranks) {
    reader.fail(mark, fmt::format("`{}` needs `rank` or `ranks`", name),
                "write `rank: 0`, or `ranks: all`");
  }
  constexpr size_t ends = 2;
  if (fault.kind == FaultKind::slow_link && !fault.between.empty() &&
      fault.between.size() != ends) {
    reader.fail(mark, "`between` names two ends of a link", "write [node 0, node 1]");
  }
  if (fault.signal && !fault.signal->value.starts_with("SIG")) {
    reader.fail(mark, fmt::format("there is no signal `{}`", fault.signal->value), "write SIGTERM");
  }
}

std::optional<FaultSpec> read_fault(Reader& reader, const Node& node) {
  const std::optional<ObjectNode> object = take_object(reader, node, "faults");
  if (!object) {
    return std::nullopt;
  }
  const auto& names = fault_names();
  const auto found = std::find(names.begin(), names.end(), object->name);
  if (found == names.end()) {
    reader.fail(object->mark, fmt::format("there is no fault `{}`", object->name),
                spelling_remedy(object->name, names));
    return std::nullopt;
  }
  FaultSpec fault;
  fault.kind = static_cast<FaultKind>(found - names.begin());
  fault.place = reader.place(object->mark);
  const size_t before = reader.complaints();
  if (object->arguments != nullptr) {
    read_table(reader, *object->arguments, fault_table(fault.kind), fault);
  }
  if (reader.complaints() == before) {
    check_required(reader, object->mark, object->arguments, fault.kind);
    check_fault(reader, object->mark, fault);
  }
  return fault;
}

}  // namespace

const std::vector<std::string_view>& fault_names() {
  static const std::vector<std::string_view> names = {
      "straggler",    "slow_data",       "slow_link", "lost_rank",     "lost_node",
      "lost_message", "corrupted_value", "exception", "out_of_memory", "signal"};
  return names;
}

Table<FaultSpec> fault_table(FaultKind kind) {
  Table<FaultSpec> table{fault_names()[static_cast<size_t>(kind)], own_fields(kind)};
  for (const Field<FaultSpec>& common : common_fields()) {
    table.fields.push_back(common);
  }
  return table;
}

std::vector<FaultSpec> read_faults(Reader& reader, const Node& node) {
  std::vector<FaultSpec> faults;
  if (node.kind != Node::Kind::list) {
    reader.fail_type(node, "faults", "a list", "write [{lost_rank: {rank: 1, at: step 3}}]");
    return faults;
  }
  for (const NodePtr& item : node.items) {
    if (auto fault = read_fault(reader, *item)) {
      faults.push_back(std::move(*fault));
    }
  }
  return faults;
}

}  // namespace lockstep
