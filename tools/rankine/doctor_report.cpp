#include "tools/rankine/doctor_report.hpp"

#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

namespace rankine {
namespace {

/// All ranks of one node.
struct Node {
  std::string host;
  int ranks = 0;
  int node_cores = 0;
  std::set<int> cores;  ///< that any of its ranks may run on
  std::int64_t shm_bytes = 0;
};

std::vector<Node> nodes_of(std::span<const RankFacts> ranks) {
  std::map<int, Node> nodes;
  for (const RankFacts& facts : ranks) {
    Node& node = nodes[facts.node];
    node.host = facts.host;
    ++node.ranks;
    node.node_cores = facts.node_cores;
    node.cores.insert(facts.cores.begin(), facts.cores.end());
    node.shm_bytes = facts.shm_bytes;
  }
  std::vector<Node> list;
  for (auto& [number, node] : nodes) list.push_back(std::move(node));
  return list;
}

std::string count_of(std::size_t n, const std::string& thing) {
  return std::to_string(n) + " " + thing + (n == 1 ? "" : "s");
}

void examine_node(const Node& node, std::vector<std::string>& warnings) {
  const std::size_t cores = node.cores.size();
  if (static_cast<std::size_t>(node.ranks) > cores) {
    warnings.push_back(node.host + ": " + count_of(static_cast<std::size_t>(node.ranks), "rank") + " share " +
                       count_of(cores, "core") +
                       " and wait for each other; start fewer ranks, or ask the launcher for more cores");
  } else if (cores < static_cast<std::size_t>(node.node_cores)) {
    warnings.push_back(node.host + ": the ranks use " + std::to_string(cores) + " of " +
                       count_of(static_cast<std::size_t>(node.node_cores), "core") +
                       "; mpirun binds a rank to one core unless it is told --bind-to none or --map-by "
                       "slot:PE=N, and srun gives what --cpus-per-task says");
  }
  constexpr std::int64_t k_least_shm = std::int64_t{64} << 20;
  if (node.ranks > 1 && node.shm_bytes < k_least_shm) {
    warnings.push_back(
        node.host + ": /dev/shm has " + std::to_string(node.shm_bytes >> 20) +
        " MiB only; MPI exchanges through it and fails when it is full: enlarge it (containers: --shm-size)");
  }
}

/// Names ranks whose text is another than rank 0's.
std::string others(std::span<const RankFacts> ranks, std::string RankFacts::*text) {
  std::vector<int> differing;
  for (const RankFacts& facts : ranks) {
    if (facts.*text != ranks[0].*text) differing.push_back(facts.rank);
  }
  return differing.empty() ? "" : "ranks " + ranges_text(differing);
}

}  // namespace

std::string to_text(const RankFacts& facts) {
  return nlohmann::json{{"rank", facts.rank},
                        {"host", facts.host},
                        {"node", facts.node},
                        {"local_rank", facts.local_rank},
                        {"cores", facts.cores},
                        {"node_cores", facts.node_cores},
                        {"instructions", facts.instructions},
                        {"versions", facts.versions},
                        {"shm_bytes", facts.shm_bytes}}
      .dump();
}

RankFacts rank_facts_from(const std::string& text) {
  const auto json = nlohmann::json::parse(text);
  RankFacts facts;
  json.at("rank").get_to(facts.rank);
  json.at("host").get_to(facts.host);
  json.at("node").get_to(facts.node);
  json.at("local_rank").get_to(facts.local_rank);
  json.at("cores").get_to(facts.cores);
  json.at("node_cores").get_to(facts.node_cores);
  json.at("instructions").get_to(facts.instructions);
  json.at("versions").get_to(facts.versions);
  json.at("shm_bytes").get_to(facts.shm_bytes);
  return facts;
}

std::string ranges_text(std::span<const int> ascending) {
  std::string text;
  for (std::size_t i = 0; i < ascending.size();) {
    std::size_t end = i + 1;
    while (end < ascending.size() && ascending[end] == ascending[end - 1] + 1) ++end;
    text += (text.empty() ? "" : ",") + std::to_string(ascending[i]);
    if (end - i > 1) text += "-" + std::to_string(ascending[end - 1]);
    i = end;
  }
  return text;
}

DoctorReport examine(std::span<const RankFacts> ranks) {
  DoctorReport report;
  std::size_t width = 4;
  for (const RankFacts& facts : ranks) width = std::max(width, facts.host.size());
  const auto line = [&](const std::string& rank, const std::string& host, const std::string& local,
                        const std::string& instructions, const std::string& cores) {
    report.table += std::string(6 - std::min<std::size_t>(rank.size(), 6), ' ') + rank + "  " + host +
                    std::string(width - host.size(), ' ') + "  " +
                    std::string(5 - std::min<std::size_t>(local.size(), 5), ' ') + local + "  " +
                    instructions + std::string(12 - std::min<std::size_t>(instructions.size(), 12), ' ') +
                    "  " + cores + "\n";
  };
  line("rank", "host", "local", "instructions", "cores");
  for (const RankFacts& facts : ranks)
    line(std::to_string(facts.rank), facts.host, std::to_string(facts.local_rank), facts.instructions,
         ranges_text(facts.cores));

  for (const Node& node : nodes_of(ranks)) examine_node(node, report.warnings);
  const std::string other_processors = others(ranks, &RankFacts::instructions);
  if (!other_processors.empty())
    report.warnings.push_back(other_processors + " have other processors than rank 0 (" +
                              ranks[0].instructions +
                              "): the bits stay the same, and every step takes as long as the slowest rank");
  if (ranks[0].instructions == "portable")
    report.warnings.push_back(
        "the processor has neither AVX-512 nor AVX2 with FMA: expect a tenth of the speed");
  const std::string other_versions = others(ranks, &RankFacts::versions);
  if (!other_versions.empty())
    report.faults.push_back(
        other_versions +
        " run other versions of Rankine, MPI or HDF5 than rank 0: install the same everywhere");
  return report;
}

}  // namespace rankine
