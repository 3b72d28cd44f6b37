#include "io/report/row_checks.hpp"

#include <limits>

namespace lockstep {

namespace {

void require(bool holds, const char* what) {
  if (!holds) {
    throw ReportError(std::string("it has ") + what +
                      ", which no rank writes: run the ranks again");
  }
}

bool is_rank(int64_t value, int32_t ranks) { return value >= 0 && value < ranks; }

void check_operation(const Row& row, int32_t ranks) {
  if (is_point_to_point(row.kind)) {
    const bool from_any = row.kind == OpKind::recv && row.peer == any_rank;
    require(from_any || is_rank(row.peer, ranks), "a message of an unknown rank");
  }
  if (has_root(row.kind)) {
    require(is_rank(row.peer, ranks), "a call with an unknown root");
  }
  require(row.kind != OpKind::new_group || row.tag >= 0, "a group of an unknown number");
  require(row.group.value < recorded_groups_max, "a call of an unknown group");
}

void check_choice(const Row& row, int32_t ranks) {
  require(row.tag >= 0 && row.tag <= static_cast<int32_t>(ChoiceKind::ready_set),
          "a choice of an unknown kind");
  if (row.tag == static_cast<int32_t>(ChoiceKind::any_source)) {
    require(is_rank(row.peer, ranks), "a message of an unknown rank");
  } else {
    require(row.bytes <= std::numeric_limits<uint32_t>::max(), "a choice of too many ways");
  }
}

}  // namespace

void check_row(const Row& row, int32_t ranks, int64_t rows) {
  require(row.row <= RowKind::finish && row.kind <= OpKind::event && row.dtype <= DType::uint8 &&
              row.reduction <= Reduction::max && row.kernel <= last_kernel,
          "a row of an unknown kind");
  require(row.bytes >= 0 && row.bytes <= recorded_size_max, "a size out of range");
  require(!has_ticket(row) || row.sequence <= rows + 1, "a ticket that was not given out");
  switch (row.row) {
    case RowKind::op: check_operation(row, ranks); break;
    case RowKind::choice: check_choice(row, ranks); break;
    case RowKind::settle:
    case RowKind::fulfil:
      require(row.peer >= 0 && row.peer <= std::numeric_limits<uint16_t>::max(),
              "a ticket of an unknown lane");
      break;
    case RowKind::allocate:
      require(row.peer >= 0 && row.peer < purpose_count, "a buffer of an unknown purpose");
      break;
    default: break;
  }
}

void check_completion(const Completion& completion, int32_t ranks) {
  static constexpr Time last = Time::max() / 4;  // sums and differences of a few stay in range
  const auto in_range = [](Time time) { return time >= Time(0) && time <= last; };
  require(completion.outcome <= Outcome::aborted, "an unknown outcome");
  require(in_range(completion.issue) && in_range(completion.start) && in_range(completion.finish),
          "a time out of range");
  require(is_rank(completion.source.value, ranks), "a message of an unknown rank");
}

void check_members(const std::vector<int32_t>& members, int32_t ranks) {
  std::vector<bool> seen(static_cast<size_t>(ranks));
  for (const int32_t member : members) {
    require(is_rank(member, ranks) && !seen[static_cast<size_t>(member)],
            "a group with unknown members");
    seen[static_cast<size_t>(member)] = true;
  }
}

void check_slice(const Slice& slice) {
  require(slice.dtype <= DType::uint8 && slice.begin >= 0 && slice.elements >= 0 &&
              slice.begin <= recorded_size_max && slice.elements <= recorded_size_max,
          "an operand out of range");
}

}  // namespace lockstep
