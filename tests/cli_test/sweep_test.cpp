// `lockstep sweep` as a user runs it: each row against `lockstep run` of the same case, shards as
// processes of which one is killed, and bad input.
#include <catch2/catch.hpp>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/cli_test/program.hpp"

using namespace lockstep::test;

namespace sweep_test {
using nlohmann::json;

namespace {

// Every kind of row: predictions, and what gives none.
const std::string training = R"(version: 1
cluster: {preset: dgx-a100, nodes: 2}
model: {preset: gpt2, seq_len: 512}
optimizer: {AdamW: {lr: 3e-4}}
trainer: {accelerator: gpu, devices: 8, num_nodes: 2, strategy: ddp, precision: bf16-mixed,
          max_steps: 3}
data: {train: {samples: 65536, batch_size: 4}}
)";

const std::string grid =
    " --vary 'trainer.strategy=ddp,fsdp,{PipelineStrategy: {schedule: SpecTrain}}'"
    " --vary data.train.batch_size=4,8,1000";

json rows_of(const std::string& arguments) {
  const Ended ended = run_program("sweep " + arguments + " --format json", "2>/dev/null");
  INFO(ended.output.substr(0, 2000));
  CHECK(ended.code == 0);
  return json::parse(ended.output).at("rows");
}

json case_of(const std::string& command) {
  const Ended ended =
      run_shell(std::string(LOCKSTEP_PROGRAM) + command.substr(8) + " --format json 2>/dev/null");
  return json::parse(ended.output).at("cases").at(0);
}

void compare_with_run(const json& row) {
  INFO(row.dump(1));
  const json alone = case_of(row.at("command").get<std::string>());
  const json& prediction = alone.at("prediction");
  const json& figures = row.at("figures");
  CHECK(figures.at("step_time_s") == prediction.at("step_time_s"));
  CHECK(figures.at("total_time_s") == prediction.at("total_time_s"));
  CHECK(figures.at("throughput") == prediction.at("samples_per_s"));
  CHECK(figures.at("steps") == prediction.at("steps"));
  CHECK(figures.at("breakdown.exposed_communication_s") ==
        prediction.at("breakdown_s").at("exposed_communication"));
  CHECK(figures.at("world_size") == alone.at("world_size"));
  CHECK(figures.at("strategy") == alone.at("strategy"));
  int64_t peak = 0;
  int64_t host = 0;
  for (const json& ranks : alone.at("ranks")) {
    peak = std::max(peak, ranks.at("memory").at("peak_bytes").get<int64_t>());
    host = std::max(host, ranks.at("memory").at("host_peak_bytes").get<int64_t>());
  }
  CHECK(figures.at("memory.peak_bytes") == peak);
  CHECK(figures.at("memory.host_bytes") == host);
}

}  // namespace

TEST_CASE("each row of a sweep is what run says of the same case") {
  const Folder folder;
  const std::string file = folder.write("train.yaml", training);
  const json rows = rows_of(file + grid + " --seed 7 --set trainer.max_steps=2");
  REQUIRE(rows.size() == 9);
  std::map<std::string, int> verdicts;
  for (const json& row : rows) {
    const std::string verdict = row.at("verdict");
    ++verdicts[verdict];
    CHECK(row.at("command").get<std::string>().find("--set trainer.max_steps=2") !=
          std::string::npos);
    if (verdict == "ok") {
      compare_with_run(row);
      CHECK(row.at("message") == "");
    } else {
      INFO(row.dump(1));
      CHECK(row.at("message").get<std::string>().size() > 10);
      CHECK_FALSE(row.at("figures").contains("step_time_s"));
    }
  }
  CHECK(rows.at(4).at("values") ==
        json({{"trainer.strategy", "fsdp"}, {"data.train.batch_size", 8}}));
  CHECK(verdicts["ok"] == 4);
  CHECK(verdicts["out_of_memory"] == 2);
  CHECK(verdicts["unsupported"] == 3);
  CHECK(rows.at(2).at("codes") == json({"LS401"}));
}

TEST_CASE("a sweep says the same for any number of jobs and also as CSV") {
  const Folder folder;
  const std::string file = folder.write("train.yaml", training);
  const std::string one = folder.file("one.jsonl");
  const std::string four = folder.file("four.jsonl");
  CHECK(run_program("sweep " + file + grid + " -j 1 --out " + one).code == 0);
  const Ended parallel =
      run_program("sweep " + file + grid + " -j 4 --format csv --out " + four, "2>/dev/null");
  CHECK(parallel.code == 0);
  CHECK(folder.read("one.jsonl") == folder.read("four.jsonl"));
  CHECK(lines_of(folder.read("one.jsonl")) == 10);
  CHECK(lines_of(parallel.output) == 10);
  CHECK(parallel.output.starts_with(
      "case,trainer.strategy,data.train.batch_size,verdict,codes,message,step_time_s,"));
}

TEST_CASE("rows are filtered and sorted and drawn") {
  const Folder folder;
  const std::string file = folder.write("train.yaml", training);
  const std::string plot = folder.file("plot.svg");
  const json rows = rows_of(file + " --vary data.train.batch_size=2,4,1000,8" +
                            " --where 'memory.peak < 80 GB' --sort throughput:desc --plot " + plot);
  REQUIRE(rows.size() == 3);
  double before = 1e300;
  for (const json& row : rows) {
    CHECK(row.at("figures").at("throughput").get<double>() < before);
    before = row.at("figures").at("throughput");
  }
  CHECK(folder.read("plot.svg").find(">data.train.batch_size</text>") != std::string::npos);
  const std::string table =
      run_program("sweep " + file + " --vary data.train.batch_size=2,1000 --sort step_time").output;
  CHECK(table.find("does not fit, LS401: ranks 0-15 run out of device memory") !=
        std::string::npos);
  CHECK(table.find("lockstep run " + file + " --set data.train.batch_size=1000\n") !=
        std::string::npos);
  CHECK(table.find("2 cases: 1 does not fit, 1 predicted") != std::string::npos);
}

TEST_CASE("a list of cases from a file is swept") {
  const Folder folder;
  const std::string file = folder.write("train.yaml", training);
  const std::string list = folder.write(
      "cases.csv", "trainer.devices,trainer.num_nodes,cluster.nodes\n4,2,2\n8,1,\n8,3,\n");
  const json rows = rows_of(file + " --vary-file " + list);
  REQUIRE(rows.size() == 3);
  CHECK(rows.at(0).at("figures").at("world_size") == 8);
  CHECK(rows.at(1).at("figures").at("world_size") == 8);
  CHECK(rows.at(1).at("values") == json({{"trainer.devices", 8}, {"trainer.num_nodes", 1}}));
  CHECK(rows.at(2).at("verdict") != "ok");  // three of two nodes
}

TEST_CASE("eight shards of which one is killed and resumed give what one process gives") {
  const Folder folder;
  folder.write("train.yaml", training);
  const std::string vary = "sweep train.yaml --vary data.train.batch_size=1,2,3,4,5,6 " +
                           std::string("--vary trainer.precision=32-true,bf16-mixed,16-mixed,") +
                           "bf16-true --vary trainer.strategy=ddp,fsdp -j 1";
  CHECK(run_program(vary + " --out whole.jsonl --format csv -o whole.csv", "2>&1", folder.path())
            .code == 0);
  REQUIRE(lines_of(folder.read("whole.jsonl")) == 49);
  const std::string program = LOCKSTEP_PROGRAM;
  const std::string shard = program + " " + vary + " --resume --shard $i/8 --out shard-$i.jsonl";
  // Shard 3 is killed behind its second row; it is begun first, so that it is not near its end.
  const Ended ended = run_shell("cd " + folder.path() + "; i=3; " + shard +
                                " >/dev/null & killed=$!; "
                                "until [ $(cat shard-3.jsonl 2>/dev/null | wc -l) -ge 3 ]; do "
                                "sleep 0.005; done; kill -9 $killed; wait $killed; "
                                "for i in 1 2 4 5 6 7 8; do " +
                                shard + " >/dev/null & done; wait");
  INFO(ended.output);
  const std::string killed = folder.read("shard-3.jsonl");
  REQUIRE(lines_of(killed) >= 3);
  REQUIRE(lines_of(killed) < 7);
  const std::string merge =
      "sweep --merge shard-*.jsonl --out merged.jsonl --format csv -o merged.csv";
  const Ended early = run_program(merge, "2>&1", folder.path());
  CHECK(early.code == 3);
  CHECK(early.output.find("shard-3.jsonl lacks ") != std::string::npos);
  CHECK(early.output.find("--resume") != std::string::npos);
  CHECK(folder.read("merged.csv").empty());

  // A line that the kill tore, wherever it was: here it is sure to be.
  folder.write("shard-3.jsonl", killed + "{\"case\":11,\"val");
  const Ended resumed =
      run_program(vary + " --resume --shard 3/8 --out shard-3.jsonl", "2>&1", folder.path());
  CHECK(resumed.code == 0);
  CHECK(resumed.output.find("the last line of shard-3.jsonl was not complete") !=
        std::string::npos);
  CHECK(folder.read("shard-3.jsonl").starts_with(killed));
  const Ended merged = run_program(merge, "2>&1", folder.path());
  INFO(merged.output);
  CHECK(merged.code == 0);
  CHECK(folder.read("merged.jsonl") == folder.read("whole.jsonl"));
  CHECK(folder.read("merged.csv") == folder.read("whole.csv"));
}

TEST_CASE("an interrupted sweep keeps its rows and says how it goes on") {
  const Folder folder;
  folder.write("train.yaml", training);
  const std::string sweep = std::string(LOCKSTEP_PROGRAM) +
                            " sweep train.yaml --vary data.train.batch_size=1,2,3,4,5,6,7,8,9,10" +
                            ",11,12,13,14,15,16,17,18,19,20 -j 1 --out rows.jsonl";
  const Ended ended = run_shell("cd " + folder.path() + "; " + sweep +
                                " -o table.txt & running=$!; "
                                "until [ $(cat rows.jsonl 2>/dev/null | wc -l) -ge 3 ]; do "
                                "sleep 0.005; done; kill -TERM $running; wait $running");
  CHECK(ended.code == 130);
  CHECK(ended.output.find("--out rows.jsonl -o table.txt --resume\n") != std::string::npos);
  const std::string rows = folder.read("rows.jsonl");
  CHECK(rows.ends_with("\n"));
  CHECK(lines_of(rows) < 21);
  CHECK(folder.read("table.txt").empty());
  const Ended resumed = run_shell("cd " + folder.path() + "; " + sweep + " --resume -o table.txt");
  CHECK(resumed.code == 0);
  CHECK(resumed.output.find("rows were in rows.jsonl already") != std::string::npos);
  CHECK(lines_of(folder.read("rows.jsonl")) == 21);
  CHECK(folder.read("rows.jsonl").starts_with(rows));
  CHECK(folder.read("table.txt").find("20 cases: 20 predicted") != std::string::npos);
}

}  // namespace sweep_test
