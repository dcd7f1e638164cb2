package shop.feira.flink;

import java.io.IOException;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ExecutionException;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.flink.configuration.CheckpointingOptions;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.GlobalConfiguration;
import org.apache.flink.configuration.PipelineOptions;
import org.apache.flink.configuration.StateRecoveryOptions;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.table.api.TableResult;

/**
 * Runs a file of SQL statements on a Flink cluster inside of this process, until its job ends or the process is stopped.
 *
 * <pre>java @jvm.options -cp … shop.feira.flink.RunSql --checkpoints=FOLDER [-Dname=value…] FILE [name=value…]</pre>
 *
 * The job goes on from the last checkpoint that a run of the same file left in FOLDER; where there is none it begins anew.
 * The folder FLINK_CONF_DIR has config.yaml, which -D settings come before. Exit codes: 0 the job ended, 1 it failed, 2 it
 * could not begin.
 */
public final class RunSql {
    private static final Pattern SET = Pattern.compile("(?is)SET\\s+'([^']+)'\\s*=\\s*'([^']*)'");
    private static final String CHECKPOINTS = "--checkpoints=";

    private final long begun = System.nanoTime();
    private final Configuration settings;
    private final Map<String, String> variables = new HashMap<>();
    private Path file;
    private Path checkpoints;

    private RunSql(String[] args) throws SqlFile.Wrong {
        Configuration given = new Configuration();
        for (String arg : args) {
            if (arg.startsWith(CHECKPOINTS)) {
                checkpoints = Path.of(arg.substring(CHECKPOINTS.length())).toAbsolutePath();
            } else if (arg.startsWith("-D")) {
                String[] pair = pair(arg.substring(2));
                given.setString(pair[0], pair[1]);
            } else if (file == null) {
                file = Path.of(arg);
            } else {
                String[] pair = pair(arg);
                variables.put(pair[0], pair[1]);
            }
        }
        if (file == null || checkpoints == null) {
            throw new SqlFile.Wrong("usage: RunSql --checkpoints=FOLDER [-Dname=value ...] FILE [name=value ...]");
        }
        String folder = System.getenv("FLINK_CONF_DIR");
        if (folder == null) {
            throw new SqlFile.Wrong("FLINK_CONF_DIR is not set; it names the folder with Flink's config.yaml");
        }
        settings = GlobalConfiguration.loadConfiguration(folder, given);
    }

    private static String[] pair(String arg) throws SqlFile.Wrong {
        String[] pair = arg.split("=", 2);
        if (pair.length != 2) {
            throw new SqlFile.Wrong("'" + arg + "' is not of the form name=value");
        }
        return pair;
    }

    public static void main(String[] args) {
        int code = 0;
        try {
            new RunSql(args).run();
        } catch (SqlFile.Wrong | IOException e) {
            System.err.println("RunSql: " + e.getMessage());
            code = 2;
        } catch (Exception e) {
            System.err.println("RunSql: the job failed");
            for (Throwable cause = e; cause != null; cause = cause.getCause()) {
                System.err.println("  because of " + cause); // the last is what it began with
            }
            code = 1;
        }
        System.exit(code); // threads of the cluster must not keep the process
    }

    private void run() throws SqlFile.Wrong, IOException, InterruptedException, ExecutionException {
        SqlFile sql = SqlFile.read(file, variables);
        Path own = checkpoints.resolve(sql.name());
        settings.set(PipelineOptions.NAME, sql.name());
        settings.set(CheckpointingOptions.CHECKPOINTS_DIRECTORY, own.toUri().toString());
        Optional<Path> last = new Checkpoints(own).last();
        if (last.isPresent()) {
            settings.set(StateRecoveryOptions.SAVEPOINT_PATH, last.get().toUri().toString());
        }
        say("%s begins %s", sql.name(), last.map(path -> "where checkpoint " + path + " is").orElse("anew"));
        TableEnvironment tables = TableEnvironment.create(
                EnvironmentSettings.newInstance().inStreamingMode().withConfiguration(settings).build());
        for (String statement : sql.statements()) {
            execute(tables, statement);
        }
        say("%s has ended", sql.name());
    }

    /** Executes one statement. An INSERT is a job: it is waited for. */
    private void execute(TableEnvironment tables, String statement) throws InterruptedException, ExecutionException {
        Matcher set = SET.matcher(statement);
        if (set.matches()) {
            tables.getConfig().set(set.group(1), set.group(2));
            return;
        }
        TableResult result = tables.executeSql(statement);
        if (result.getJobClient().isPresent()) {
            say("job %s runs", result.getJobClient().get().getJobID());
            result.await();
        } else if (statement.regionMatches(true, 0, "EXPLAIN", 0, "EXPLAIN".length())) {
            result.print();
        }
    }

    /** Tells how it goes, with the seconds since the start and those of the processor. */
    private void say(String format, Object... args) {
        double used = ProcessHandle.current().info().totalCpuDuration().map(d -> d.toMillis() / 1e3).orElse(0.0);
        System.err.printf("RunSql: %.1f s, %.1f CPU-s: %s%n", (System.nanoTime() - begun) / 1e9, used, String.format(format, args));
    }
}
