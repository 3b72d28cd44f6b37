#include "cli/render/group_names.hpp"

#include <catch2/catch.hpp>

#include "cli/render/call_list.hpp"
#include "tests/unit/rehearsal/rehearsed.hpp"

using namespace lockstep;
using namespace lockstep::cli;
using namespace lockstep::test;

TEST_CASE("groups are called as the program calls them and no two alike") {
  const auto jobs = rehearsed(bare_text(4, R"yaml(    - new_group: {ranks: [0, 1], as: pair}
    - all_reduce: {elements: 4, group: pair, as: a}
    - repeat: 2
      do: [{new_group: {ranks: [0, 1, 2], as: three}}, {barrier: {group: three}}]
)yaml"));
  const Rehearsal& rehearsal = jobs.front().result;
  const Journal& journal = *rehearsal.run.result.journal;
  const GroupNames names(journal);
  CHECK(names[0] == "world");
  CHECK(names[journal.groups[1][1].communicator] == "pair (ranks 0-1)");
  CHECK(names[journal.groups[2][2].communicator] == "three (ranks 0-2)");
  CHECK(names[journal.groups[0][3].communicator] == "three (ranks 0-2), group 2");
  CHECK(names[12345] == "unknown group");
  const std::string listed = render_calls(rehearsal);
  CHECK(listed.find("  pair (ranks 0-1) ") != std::string::npos);
  CHECK(listed.find("  three (ranks 0-2), group 2 1 ") != std::string::npos);
}
