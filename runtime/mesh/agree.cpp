#include "runtime/mesh/agree.hpp"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <new>
#include <optional>
#include <string>
#include <typeinfo>

#include "runtime/error.hpp"
#include "runtime/mesh/world.hpp"

namespace rankine {
namespace {

/// A failure in a form that can be sent.
struct Failure {
  char kind = 'e';  // which class is thrown; e: Error itself, with this code
  int code = static_cast<int>(ExitCode::rank_failed);
  std::string text;

  std::string encode() const { return kind + std::to_string(code) + ":" + text; }
  static Failure decode(const std::string& sent) {
    return {sent[0], std::stoi(sent.substr(1)), sent.substr(sent.find(':') + 1)};
  }
};

template <class E>
void throw_as(const std::string& text) {
  throw E(text);
}

struct Kind {
  char letter;
  bool (*is)(const std::exception&);
  void (*raise)(const std::string&);
};

template <class E>
constexpr Kind kind_of(char letter) {
  return {letter, [](const std::exception& e) { return dynamic_cast<const E*>(&e) != nullptr; }, throw_as<E>};
}

constexpr Kind k_kinds[] = {kind_of<UsageError>('u'),      kind_of<ConfigError>('c'),
                            kind_of<DataError>('d'),       kind_of<NumericError>('n'),
                            kind_of<CheckpointError>('p'), kind_of<CommunicationError>('m')};

Failure describe(const std::exception& e) {
  for (const Kind& kind : k_kinds) {
    if (kind.is(e))
      return {kind.letter, static_cast<int>(dynamic_cast<const Error&>(e).exit_code()), e.what()};
  }
  Failure failure;
  if (const auto* error = dynamic_cast<const Error*>(&e)) {
    failure.code = static_cast<int>(error->exit_code());
    failure.text = e.what();
  } else if (dynamic_cast<const std::bad_alloc*>(&e) != nullptr) {
    failure.text =
        "out of memory: the system refused to give more. Use more ranks, a smaller batch, or --accumulate.";
  } else {
    failure.text = std::string("unexpected error: ") + e.what();
  }
  return failure;
}

std::optional<Failure> failure_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const std::exception& e) {
    return describe(e);
  } catch (...) {
    Failure failure;
    failure.text = "unexpected error of a type that carries no text";
    return failure;
  }
  return std::nullopt;
}

[[noreturn]] void raise(const Failure& failure) {
  for (const Kind& kind : k_kinds) {
    if (kind.letter == failure.kind) kind.raise(failure.text);
  }
  throw Error(static_cast<ExitCode>(failure.code), failure.text);
}

/// The failure to throw everywhere, from what every rank sent: empty where it succeeded.
Failure choose(const Communicator& group, const std::vector<std::string>& sent) {
  const auto failed = [](const std::string& text) { return !text.empty(); };
  const auto first = std::find_if(sent.begin(), sent.end(), failed);
  Failure failure = Failure::decode(*first);
  const bool everywhere = std::all_of(sent.begin(), sent.end(), [&](const auto& s) { return s == *first; });
  const bool has_prefix = failure.text.starts_with("[rank ");
  if (!everywhere && !has_prefix) {
    failure.text = "[" + group.member(static_cast<int>(first - sent.begin())) + "] " + failure.text;
  }
  return failure;
}

}  // namespace

void agree(Communicator& group, const std::function<void()>& act) {
  const auto failure = failure_of(act);
  std::int64_t failed[] = {failure ? 1 : 0};
  group.all_reduce(std::span<std::int64_t>(failed), ReduceOp::max)->wait();
  if (failed[0] == 0) return;
  raise(choose(group, group.all_gather_text(failure ? failure->encode() : "")));
}

int run_ranks(World& world, const std::function<int()>& body) {
  // Made before anything can fail; its deadline tells shared failures from lonely ones.
  const auto verdict = world.communicator().split(0, world.rank(), "verdict");
  verdict->set_deadline(std::chrono::seconds(2));
  int code = 0;
  const auto failure = failure_of([&] { code = body(); });
  if (!failure) return code;
  try {
    const Failure shared = choose(*verdict, verdict->all_gather_text(failure->encode()));
    if (world.rank() == 0) {
      std::fflush(stdout);
      std::fprintf(stderr, "rankine: %s\n", shared.text.c_str());
    }
    return shared.code;
  } catch (const CommunicationError&) {
    world.report_failure(failure->text);
    world.abort(failure->code);
  }
}

}  // namespace rankine
