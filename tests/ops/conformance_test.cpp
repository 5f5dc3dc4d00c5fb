// Conformance of every operator, generated from its record: nobody writes these tests, a record's samples are enough.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "analysis/claims.h"
#include "base/convert.h"
#include "interp/interp.h"
#include "ir/signature.h"
#include "ir/text_reader.h"
#include "ops/registry.h"
#include "sample.h"

namespace selkie::tests {
namespace {

class Operator : public testing::TestWithParam<const ir::OpDef*> {
 protected:
  std::vector<ParsedSample> samples(bool good) {
    std::vector<ParsedSample> out;
    for (const ir::Sample& s : GetParam()->samples) {
      ParsedSample parsed = parse_sample(*GetParam(), s);
      if (parsed.good() == good) out.push_back(std::move(parsed));
    }
    return out;
  }
};

std::vector<HostValue> run(const ParsedSample& sample, uint64_t seed = 1) {
  return interp::run(*sample.module(), sample.inputs(seed));
}

// The shapes of all tensors in a value, as text.
std::string shapes(const HostValue& value) {
  if (value.is_absent()) return "absent";
  if (value.is_tensor()) return to_string(value.tensor().dims());
  if (!value.is_sequence()) return "other";
  std::string out = "seq";
  for (const HostValue& item : value.sequence()) out += shapes(item);
  return out;
}

void expect_matches(const HostValue& actual, const SampleOperand& expected) {
  if (expected.absent) return;
  auto expect_items = [&](const std::vector<HostValue>& items) {
    ASSERT_EQ(items.size(), expected.items.size());
    for (size_t i = 0; i < items.size(); ++i) expect_matches(items[i], expected.items[i]);
  };
  if (expected.kind == SampleOperand::Kind::sequence) {
    ASSERT_TRUE(actual.is_sequence()) << actual.describe();
    expect_items(actual.sequence());
    return;
  }
  if (expected.kind == SampleOperand::Kind::record) {
    ASSERT_TRUE(actual.is_record()) << actual.describe();
    EXPECT_EQ(actual.record().constructor, expected.label);
    expect_items(actual.record().fields);
    return;
  }
  if (expected.kind == SampleOperand::Kind::closure) {
    ASSERT_TRUE(actual.is_closure()) << actual.describe();
    EXPECT_EQ(actual.closure().function, expected.label);
    expect_items(actual.closure().captured);
    return;
  }
  if (expected.kind == SampleOperand::Kind::optional) {
    ASSERT_TRUE(actual.is_optional()) << actual.describe();
    ASSERT_EQ(actual.optional().value != nullptr, !expected.items.empty());
    if (!expected.items.empty()) expect_matches(*actual.optional().value, expected.items[0]);
    return;
  }
  if (expected.kind == SampleOperand::Kind::map) {
    ASSERT_TRUE(actual.is_map()) << actual.describe();
    expect_matches(actual.map().keys, expected.items.at(0));
    expect_matches(actual.map().values, expected.items.at(1));
    return;
  }
  ASSERT_TRUE(actual.is_tensor()) << actual.describe();
  EXPECT_EQ(name(actual.tensor().dtype()), name(*expected.dtype));
  EXPECT_EQ(to_string(actual.tensor().dims()), to_string(expected.dims));
  if (!expected.has_contents || testing::Test::HasFailure()) return;
  std::mt19937_64 random;
  Tensor wanted = expected.make(random).tensor();
  if (!is_float(wanted.dtype())) {
    EXPECT_EQ(ir::spell_elements(actual.tensor()), expected.elements_text);
    return;
  }
  std::vector<double> a = widen<double>(actual.tensor());
  std::vector<double> e = widen<double>(wanted);
  for (size_t i = 0; i < a.size(); ++i)
    if (!(std::isnan(a[i]) && std::isnan(e[i])) && a[i] != e[i])
      EXPECT_NEAR(a[i], e[i], 1e-5 * std::max(1.0, std::fabs(e[i]))) << "element " << i;
}

TEST_P(Operator, RecordIsConsistent) {
  const ir::OpDef& op = *GetParam();
  EXPECT_FALSE(op.doc.empty());
  EXPECT_TRUE(std::is_sorted(op.onnx.versions.begin(), op.onnx.versions.end()));
  if (!op.onnx.name.empty()) EXPECT_FALSE(op.onnx.versions.empty());
  for (std::string_view cause : op.dynamism.causes)
    EXPECT_TRUE(std::any_of(op.operands.begin(), op.operands.end(), [&](const auto& o) { return o.name == cause; }))
        << "cause '" << cause << "' is no operand";
  for (const auto* list : {&op.operands, &op.results})
    for (size_t i = 0; i + 1 < list->size(); ++i)
      EXPECT_NE((*list)[i].arity, ir::Arity::variadic) << "only the last may repeat";
  for (const ir::AttrDef& a : op.attrs)
    if (a.fallback) EXPECT_EQ(ir::kind_of(*a.fallback), a.kind) << a.name;
  EXPECT_TRUE(
      std::is_sorted(op.upgrades.begin(), op.upgrades.end(), [](auto& a, auto& b) { return a.version < b.version; }));
  EXPECT_TRUE(!op.eval || !samples(true).empty()) << "a record needs at least one good sample";
}

TEST_P(Operator, GoodSamplesGiveWhatTheySay) {
  for (const ParsedSample& sample : samples(true)) {
    std::vector<HostValue> results = run(sample);
    ASSERT_EQ(results.size(), sample.expected.size());
    for (size_t i = 0; i < results.size(); ++i) {
      SCOPED_TRACE(fmt::format("result {} of {} {}", i, GetParam()->name, sample.rest));
      expect_matches(results[i], sample.expected[i]);
    }
  }
}

TEST_P(Operator, BadSamplesNameTheOperator) {
  for (const ParsedSample& sample : samples(false)) {
    try {
      run(sample);
      ADD_FAILURE() << "no error, but one with '" << sample.error << "' was expected";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(sample.error), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find(GetParam()->name), std::string::npos) << error.what();
    }
  }
}

// How much the analysis is told about a sample's operands.
enum class Told { numbers, symbols, ranks, contents, symbols_and_contents };

// The sample's module with operands declared that way. Contents that the sample writes out become constants.
std::unique_ptr<ir::Module> declare(const ParsedSample& sample, Told told) {
  std::unique_ptr<ir::Module> module = sample.module();
  ir::Region& body = module->main().body;
  std::unordered_map<const ir::Value*, ir::Value*> constants;
  std::mt19937_64 random(1);
  size_t at = 0;
  for (size_t i = 0; i < sample.operands.size(); ++i) {
    const SampleOperand& operand = sample.operands[i];
    if (operand.absent) continue;
    ir::Value& parameter = *body.parameters[at++];
    if (!operand.dtype) continue;
    ir::SymDims dims;
    for (int64_t d : operand.dims) dims.push_back(module->symbols().constant(d));
    parameter.type = ir::Type::tensor(*operand.dtype, std::move(dims));
    bool with_contents = told == Told::contents || told == Told::symbols_and_contents;
    if (with_contents && operand.has_contents) {
      constants[&parameter] = module->add_constant(parameter.name, operand.make(random).tensor());
      continue;
    }
    if (told == Told::ranks) parameter.type.dims.reset();
    if (told != Told::symbols && told != Told::symbols_and_contents) continue;
    for (size_t axis = 0; axis < parameter.type.dims->size(); ++axis)
      (*parameter.type.dims)[axis] = module->symbols().symbol(fmt::format("d{}_{}", i, axis));
  }
  ir::replace_uses(body, constants);
  return module;
}

// Every claim that the analysis makes about a good sample must hold when it runs, whatever it is told.
TEST_P(Operator, ClaimsOfTheAnalysisHold) {
  for (const ParsedSample& sample : samples(true)) {
    for (Told told : {Told::numbers, Told::symbols, Told::ranks, Told::contents, Told::symbols_and_contents}) {
      SCOPED_TRACE(fmt::format("{} {}, variant {}", GetParam()->name, sample.rest, static_cast<int>(told)));
      std::unique_ptr<ir::Module> module = declare(sample, told);
      analysis::Rdp rdp(*module);
      analysis::ClaimChecker claims(rdp);
      interp::Options options;
      options.observer = [&](const ir::Node& node, auto results) { claims.results(node, results); };
      options.on_enter = [&](const ir::Region& region, auto arguments) { claims.enter(region, arguments); };
      options.on_leave = [&](const ir::Region& region) { claims.leave(region); };
      interp::run(*module, sample.inputs(1), options);
      EXPECT_EQ(claims.refusal(), "");
      for (const std::string& violation : claims.violations()) ADD_FAILURE() << violation;
    }
  }
}

// Told everything that decides the shape, the analysis finds it; only EDO operators and sequences keep a secret.
TEST_P(Operator, ForwardFindsTheShape) {
  const ir::OpDef& op = *GetParam();
  if (!op.forward) GTEST_SKIP() << op.forward.reason();
  for (const ParsedSample& sample : samples(true)) {
    std::unique_ptr<ir::Module> module = declare(sample, Told::contents);
    bool decided = op.dynamism.cls != ir::DynamismClass::edo;
    for (size_t i = 0; i < sample.operands.size(); ++i) {
      const ir::Operand* record = ir::operand_record(op.operands, i);
      bool cause = std::ranges::find(op.dynamism.causes, record->name) != op.dynamism.causes.end();
      decided = decided && (sample.operands[i].absent ||
                            (sample.operands[i].dtype && (!cause || sample.operands[i].has_contents)));
    }
    if (!decided) continue;
    SCOPED_TRACE(fmt::format("{} {}", op.name, sample.rest));
    analysis::Rdp rdp(*module);
    for (const auto& result : module->main().body.nodes[0]->results) {
      const ir::Type& type = rdp.known(*result).type;
      if (!type.is_tensor()) {
        EXPECT_FALSE(type.is_unknown());
        continue;
      }
      ASSERT_TRUE(type.dims);
      for (sym::Expr e : *type.dims) EXPECT_TRUE(e.is_constant()) << to_string(type);
    }
  }
}

TEST_P(Operator, ValuesThatAreNoCausesDoNotReachTheShape) {
  const ir::OpDef& op = *GetParam();
  if (op.dynamism.cls == ir::DynamismClass::edo) return;
  for (const ParsedSample& sample : samples(true)) {
    std::vector<HostValue> inputs = sample.inputs(1);
    std::vector<HostValue> results = run(sample);
    size_t at = 0;
    for (size_t i = 0; i < sample.operands.size(); ++i) {
      if (sample.operands[i].absent) continue;
      size_t index = at++;
      std::string_view name = ir::operand_record(op.operands, i)->name;
      bool cause = std::find(op.dynamism.causes.begin(), op.dynamism.causes.end(), name) != op.dynamism.causes.end();
      if (cause || !inputs[index].is_tensor() || inputs[index].tensor().dtype() == DType::str) continue;
      const Tensor& t = inputs[index].tensor();
      std::vector<std::complex<double>> values = widen<std::complex<double>>(t);
      std::reverse(values.begin(), values.end());
      if (is_float(t.dtype()) || is_complex(t.dtype()))
        for (auto& v : values) v *= 0.5;
      std::vector<HostValue> changed = inputs;
      changed[index] = narrow<std::complex<double>>(values, t.dtype(), t.dims());
      std::vector<HostValue> others;
      try {
        others = interp::run(*sample.module(), changed);
      } catch (const Error&) {
        continue;  // the changed values may be out of range, which says nothing about shapes
      }
      for (size_t r = 0; r < results.size(); ++r)
        EXPECT_EQ(shapes(others[r]), shapes(results[r])) << "operand '" << name << "' is not declared as a cause";
    }
  }
}

TEST_P(Operator, TakesEveryDTypeItDeclares) {
  const ir::OpDef& op = *GetParam();
  for (const ir::Operand& record : op.operands) {
    if (record.container != ir::Container::tensor) continue;
    for (const DTypeInfo& row : all_dtypes()) {
      if (!record.type.dtypes.contains(row.dtype)) continue;
      size_t tried = 0;
      bool given = false;  // by some good sample; operands that are always refused have none
      std::string problem;
      for (ParsedSample sample : samples(true)) {
        bool uses = false;
        for (size_t i = 0; i < sample.operands.size(); ++i) {
          SampleOperand& operand = sample.operands[i];
          const ir::Operand* r = ir::operand_record(op.operands, i);
          if (operand.absent || !operand.dtype || r->type.name != record.type.name) continue;
          operand.dtype = row.dtype;
          uses = true;
        }
        if (!uses) continue;
        given = true;
        std::vector<HostValue> inputs;
        try {
          inputs = sample.inputs(1);
        } catch (const Error&) {
          continue;  // the contents that the sample spells out are none of this dtype
        }
        ++tried;
        try {
          interp::run(*sample.module(), inputs);
          problem.clear();
          break;
        } catch (const Error& error) {
          problem = error.what();
        }
      }
      EXPECT_TRUE(tried > 0 || !given) << "no sample fits operand '" << record.name << "' as " << row.name;
      EXPECT_EQ(problem, "") << "operand '" << record.name << "' as " << row.name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Operator, testing::ValuesIn(ops::op_set().all()),
                         [](const auto& test) { return std::string(test.param->name); });

}  // namespace
}  // namespace selkie::tests
