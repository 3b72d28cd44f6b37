#include <algorithm>
#include <catch2/catch.hpp>

#include "cli/render/excerpt.hpp"
#include "cli/render/json.hpp"
#include "cli/render/junit.hpp"
#include "cli/render/render.hpp"
#include "explain/explain_tables.hpp"
#include "model/scenario/finding_codes.hpp"
#include "tests/unit/rehearsal/rehearsed.hpp"

using namespace lockstep;
using namespace lockstep::cli;
using namespace lockstep::test;

TEST_CASE("a mark stands below what it marks, also behind letters of several bytes") {
  const Sources sources = {{"a.yaml", "first\n  größe: [barrier]\n"}};
  // Column 13 counts bytes: ö and ß take two each.
  CHECK(excerpt("a.yaml", {{2, 13, "", "here", true}}, sources, {}) ==
        "   |\n"
        " 2 |   größe: [barrier]\n"
        "   |           ^^^^^^^ here\n"
        "   |\n");
}

TEST_CASE("a finding shows the call, its guard, and who did what") {
  const auto jobs = rehearsed(bare_text(4, guarded_statements));
  const std::string text = render_verify(jobs.front().result, {});
  CHECK(
      text.starts_with("error[LS101]: rank 0 waits forever in all_gather: ranks 1-3 never call "
                       "it\n  --> scenario.yaml:7:11\n   |\n"
                       " 5 |     - if: is_global_zero\n"
                       "   |           -------------- true on rank 0, false on ranks 1-3\n"));
  CHECK(text.find(" 7 |         - all_gather: {elements: 16, as: gathered}\n"
                  "   |           ^^^^^^^^^^ call 1 of group world\n") != std::string::npos);
  CHECK(text.find("\n   = rank 0   call 1: all_gather fp32 [16]   from line 7\n") !=
        std::string::npos);
  CHECK(text.find("1 error, 0 warnings. Checked: 4 ranks, 2 ranks for all 4 ") !=
        std::string::npos);
  CHECK(text.find("Not checked: other world sizes") != std::string::npos);
}

TEST_CASE("colour is only where it is asked for") {
  const auto jobs = rehearsed(bare_text(2, guarded_statements));
  CHECK(render_verify(jobs.front().result, {}).find('\033') == std::string::npos);
  CHECK(printable_result(render_verify(jobs.front().result, {true, true}))
            .find("\033[1;31merror[LS101]\033[0m") != std::string::npos);
}

TEST_CASE("the JSON of a case has stable keys with their units") {
  const auto jobs = rehearsed(bare_text(4, "    - kernel: 2 ms\n"));
  Request request;
  request.command = "run";
  const Json report = Json::parse(cli::text_of(json_of({&jobs.front().result}, request)));
  CHECK(report.at("schema_version") == 2);
  CHECK(report.at("command") == "run");
  CHECK(report.at("verdict") == "ok");
  REQUIRE(report.at("cases").size() == 1);
  const Json& json = report.at("cases").at(0);
  CHECK(json.at("scenario") == "scenario.yaml");
  CHECK(json.at("verdict") == "ok");
  CHECK(json.at("findings").empty());
  CHECK(json.at("prediction").at("total_time_s") == Approx(0.002));
  CHECK(json.at("prediction").at("step_time_s").is_null());
  CHECK(json.at("prediction").at("breakdown_s").at("compute") == Approx(0.002));
  CHECK(json.at("ranks").size() == 1);
  CHECK(json.at("ranks").at(0).at("ranks") == "0-3");
  CHECK(json.at("operations").at("folded") == true);  // rank 1 runs for ranks 1-3
  CHECK(json.at("prediction").at("simulated_ranks") == 2);
}

TEST_CASE("a finding in JSON names its ranks, its call and its places") {
  const auto jobs = rehearsed(bare_text(4, guarded_statements));
  Request request;
  request.command = "verify";
  const Json json = json_of(jobs.front().result, request);
  const Json& finding = json.at("findings").at(0);
  CHECK(json.at("verdict") == "findings");
  CHECK(finding.at("code") == "LS101");
  CHECK(finding.at("level") == "error");
  CHECK(finding.at("group") == "world");
  CHECK(finding.at("call") == 1);
  CHECK(finding.at("sites").at(0).at("line") == 7);
  CHECK_FALSE(finding.at("fix").empty());
}

TEST_CASE("text in XML is escaped, and what XML cannot hold is replaced") {
  CHECK(xml_text("a<b> & \"c\"") == "a&lt;b&gt; &amp; &quot;c&quot;");
  CHECK(xml_text(std::string("a\x01\xff") + "b") ==
        "a\xef\xbf\xbd\xef\xbf\xbd"
        "b");
  CHECK(xml_text("größe") == "größe");
}

TEST_CASE("a JUnit report counts its suites and cases") {
  const std::string report = junit_of({
      {"a.yaml", "a.yaml:one", "a.yaml", JunitCase::State::passed, "", ""},
      {"a.yaml", "a.yaml:two", "a.yaml", JunitCase::State::failed, "expected <x>", "why"},
      {"b.yaml", "b.yaml", "b.yaml", JunitCase::State::skipped, "later", ""},
  });
  CHECK(report.find("<testsuites name=\"lockstep\" tests=\"3\" failures=\"1\" errors=\"0\" "
                    "skipped=\"1\">") != std::string::npos);
  CHECK(report.find("<testsuite name=\"a.yaml\" tests=\"2\" failures=\"1\"") != std::string::npos);
  CHECK(report.find("<failure message=\"expected &lt;x&gt;\">why</failure>") != std::string::npos);
  CHECK(report.ends_with("</testsuites>\n"));
}

TEST_CASE("every code that hangs or computes a wrong value has a page") {
  for (const std::string_view name : finding_codes) {
    INFO(name);
    CHECK(find_page(name) != nullptr);
  }
  for (const char* name : {"step_time", "breakdown.compute", "transfers.all_reduce", "metric"}) {
    INFO(name);
    CHECK(find_page(name) != nullptr);
  }
  CHECK(find_page("LS999") == nullptr);
  for (const auto pages : {hang_pages(), value_pages()}) {
    for (const Page& page : pages) {
      INFO(page.name);
      CHECK(std::count(finding_codes.begin(), finding_codes.end(), page.name) == 1);
    }
  }
}
