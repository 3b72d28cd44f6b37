#include "model/user_program/group_statements.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/user_program/rank_names.hpp"
#include "model/user_program/sites.hpp"
#include "model/user_program/statement_failure.hpp"

namespace lockstep {

GroupStatements::GroupStatements(const StatementParts& parts)
    : rank_(parts.context.rank),
      settings_(parts.context.settings),
      log_(parts.context.log),
      streams_(parts.streams),
      names_(parts.names),
      expressions_(parts.expressions) {}

Group GroupStatements::of(const Statement& statement, Frame& frame) {
  if (!statement.group || statement.group->value == "world") {
    return {};
  }
  const Variable* variable = names_.find(statement.group->value, frame);
  const Group* group = variable == nullptr ? nullptr : std::get_if<Group>(&variable->content);
  if (group == nullptr) {
    fail_at(log_, site_of(statement),
            fmt::format("`{}` is not a group here", statement.group->value),
            "make it first with `new_group`");
  }
  return *group;
}

Task<std::vector<int64_t>> GroupStatements::members_of(const Statement& statement, Frame& frame) {
  const SiteId site = site_of(statement);
  std::vector<int64_t> members;
  for (const Placed<Expression>& expression : statement.ranks) {
    const int64_t member =
        co_await expressions_.integer_of(expression.value, frame, site, "a rank");
    members.push_back(member);
  }
  if (statement.ranks_expression) {
    const Value list =
        co_await expressions_.value_of(statement.ranks_expression->value, frame, site);
    if (!list.is(Value::Kind::list)) {
      fail_at(log_, site, fmt::format("`ranks` is a {}, not a list", type_of(list)),
              "write [0, 1]");
    }
    for (const Value& item : list.list()) {
      if (!item.is(Value::Kind::integer)) {
        fail_at(log_, site, "`ranks` holds values that are not ranks", "write [0, 1]");
      }
      members.push_back(item.integer());
    }
  }
  std::sort(members.begin(), members.end());  // as torch's new_group does
  for (size_t i = 0; i < members.size(); ++i) {
    const int64_t member = members[i];
    const bool twice = i > 0 && members[i - 1] == member;
    if (member < 0 || member >= rank_.world_size() || twice) {
      throw ProgramException(site, fmt::format("new_group: rank {} is {}", member,
                                               twice ? "given twice" : "outside of the world"));
    }
  }
  co_return members;
}

// A rank computes the others' colours to know how large its group will be, as a program that calls
// ncclCommSplit does; names other than those of the rank are taken to be the same everywhere.
std::vector<int32_t> GroupStatements::members_of_color(const Statement& statement, Frame& frame,
                                                       int64_t color) {
  const Expression& expression = statement.color->value;
  const SiteId site = site_of(statement);
  if (expression.uses_random() || expression.uses_unknown()) {
    fail_at(log_, site, "`color` depends on chance", "let it depend on the rank only");
  }
  std::vector<int32_t> members;
  for (int32_t other = 0; color >= 0 && other < rank_.world_size(); ++other) {
    const Place place = place_of_other(rank_.place(), settings_.ranks_of_nodes, other);
    if (expressions_.integer_at(place, expression, frame, site, "`color`") == color) {
      members.push_back(other);
    }
  }
  if (color < 0) {
    members.push_back(any_rank);  // nobody: this rank is in no group
  }
  return members;
}

Program GroupStatements::new_group(const Statement& statement, Frame& frame) {
  const SiteId site = site_of(statement);
  Group group;
  std::vector<int64_t> members;
  int64_t color = 0;
  if (statement.color) {
    color = co_await expressions_.integer_of(statement.color->value, frame, site, "`color`");
    group.members = members_of_color(statement, frame, color);
  } else {
    members = co_await members_of(statement, frame);
    group.members.assign(members.begin(), members.end());
  }
  const std::vector<Ticket> after = streams_.take_waits_after_compute(communication_stream, site);
  const CommunicationOptions options{communication_stream, After(after), site};
  const Rank::NewGroup made =
      statement.color
          ? rank_.split_group(world_group, color < 0 ? no_color : static_cast<int32_t>(color),
                              options)
          : rank_.new_group(world_group, members, options);
  group.id = made.group;
  streams_.submitted(communication_stream, made.ready);
  co_await streams_.settle(made.ready, communication_stream);
  names_.bind(statement.result->value, Variable{group}, frame);
}

}  // namespace lockstep
