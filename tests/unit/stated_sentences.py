"""Sentences that state a rule or a decision, and near misses, written before the cue table was.

Every other line is held out: the cue table is tuned to the first, third, … of each table only, and the share of the
others that is found is a measure (`test_facts_rules.py`). ``u`` is a prompt of the user, ``a`` a reply of the agent in
a turn that changed files.
"""

RULES = """\
u en Never touch generated/.
u en Always run make fmt before committing.
u en From now on, write every commit message in the imperative.
u en Please never commit directly to main.
u en All endpoints must return JSON.
u en Every public function must have a docstring.
u en Secrets must never be logged.
u en Don't edit files under vendor/ by hand.
u en Only use the standard library.
u en Use only dependencies that are MIT licensed.
u en We never push on Fridays.
u en In this project we always use tabs.
u en Do not add new dependencies without asking me.
u en You must not change the public API.
u en No function may be longer than 60 lines.
u en Migrations must always be reversible.
u de Fasse den Ordner generated/ niemals an.
u de Führe vor jedem Commit immer make fmt aus.
u de Ab jetzt schreibst du alle Kommentare auf Deutsch.
u de Niemals direkt auf main committen.
u de Alle Endpunkte müssen JSON liefern.
u de Passwörter dürfen nie geloggt werden.
u de Bitte verwende nur die Standardbibliothek.
u de Keine neuen Abhängigkeiten ohne Rückfrage.
u de Wir benutzen grundsätzlich Tabs.
u fr Ne touche jamais au dossier generated/.
u fr Lance toujours make fmt avant de committer.
u fr À partir de maintenant, écris les commentaires en français.
u fr Tous les endpoints doivent renvoyer du JSON.
u fr N'utilise que la bibliothèque standard.
u fr Il ne faut jamais journaliser les mots de passe.
u es Nunca toques la carpeta generated/.
u es Ejecuta siempre make fmt antes de hacer commit.
u es A partir de ahora escribe los comentarios en español.
u es Todos los endpoints deben devolver JSON.
u es No modifiques nunca los archivos de vendor/.
u es Usa solo la biblioteca estándar.
u it Non toccare mai la cartella generated/.
u it Esegui sempre make fmt prima del commit.
u it D'ora in poi scrivi i commenti in italiano.
u it Tutti gli endpoint devono restituire JSON.
u it Usa solo la libreria standard.
u pt Nunca altere a pasta generated/.
u pt Execute sempre make fmt antes de fazer commit.
u pt A partir de agora escreva os comentários em português.
u pt Todos os endpoints devem devolver JSON.
u pt Use apenas a biblioteca padrão.
u nl Raak de map generated/ nooit aan.
u nl Voer altijd make fmt uit voor je commit.
u nl Schrijf vanaf nu alle commentaren in het Nederlands.
u nl Alle endpoints moeten JSON teruggeven.
u nl Gebruik alleen de standaardbibliotheek.
u pl Nigdy nie zmieniaj katalogu generated/.
u pl Zawsze uruchamiaj make fmt przed commitem.
u pl Od teraz pisz komentarze po polsku.
u pl Wszystkie endpointy muszą zwracać JSON.
u pl Używaj tylko biblioteki standardowej.
u ru Никогда не трогай папку generated/.
u ru Всегда запускай make fmt перед коммитом.
u ru Отныне пиши комментарии на русском.
u ru Все эндпоинты должны возвращать JSON.
u ru Используй только стандартную библиотеку.
u zh 永远不要修改 generated/ 目录。
u zh 提交之前一定要运行 make fmt。
u zh 从现在开始，注释都用中文写。
u zh 所有接口必须返回 JSON。
u zh 禁止把密码写进日志。
u zh 不要手动编辑 vendor/ 下的文件。
u ja generated/ フォルダは絶対に変更しないでください。
u ja コミットの前に必ず make fmt を実行してください。
u ja 今後コメントはすべて日本語で書いてください。
u ja すべてのエンドポイントは JSON を返さなければならない。
u ja パスワードをログに出力してはいけません。
u ja 標準ライブラリだけを使ってください。
"""

DECISIONS = """\
u en We use PostgreSQL instead of SQLite, because several people write at once.
u en POST should answer 201.
u en Let's go with Redis rather than memcached.
u en I decided to keep the cache in memory.
u en Use httpx instead of requests.
u en Prefer dataclasses over plain dicts.
u en We'll stick with Flask.
u en The class should be called TodoStore.
u en Rather set PORT to 8000.
u en Let's drop support for Python 3.8.
u en Ports should start at 9000, not 8000.
u en We are switching from npm to pnpm.
u en The export should be sorted by date.
u en A todo should not be saved without a title.
a en I chose SQLite over PostgreSQL because it needs no server.
a en I went with a ring buffer rather than a list.
a en I used argparse instead of click, because it adds no dependency.
a en I decided to keep the old endpoint for compatibility.
a en The parser now uses a state machine instead of regular expressions.
a en We use UTC everywhere because the servers are in different zones.
a en I kept the lock file out of the repository, since it differs per platform.
a en Instead of polling, the worker now waits for a notification.
u de Wir nehmen PostgreSQL statt SQLite, weil mehrere gleichzeitig schreiben.
u de POST soll mit 201 antworten.
u de Lass uns Redis anstelle von memcached verwenden.
u de Wir bleiben bei Flask.
u de Nimm lieber httpx statt requests.
u de Die Klasse soll TodoStore heißen.
a de Ich habe SQLite statt PostgreSQL verwendet, weil es keinen Server braucht.
a de Ich habe mich für einen Ringpuffer entschieden.
a de Statt regulärer Ausdrücke verwendet der Parser jetzt einen Automaten.
u fr On utilise PostgreSQL au lieu de SQLite, parce que plusieurs personnes écrivent en même temps.
u fr POST doit répondre 201.
u fr On garde Flask.
u fr Utilise httpx plutôt que requests.
a fr J'ai choisi SQLite plutôt que PostgreSQL car il ne demande pas de serveur.
a fr J'ai décidé de garder l'ancien point d'accès.
u es Usamos PostgreSQL en lugar de SQLite porque escriben varias personas a la vez.
u es POST debe responder 201.
u es Mejor usa httpx en vez de requests.
u es Nos quedamos con Flask.
a es Elegí SQLite en lugar de PostgreSQL porque no necesita servidor.
a es He decidido mantener el endpoint antiguo.
u it Usiamo PostgreSQL invece di SQLite, perché scrivono più persone insieme.
u it POST deve rispondere 201.
u it Usa httpx al posto di requests.
a it Ho scelto SQLite invece di PostgreSQL perché non richiede un server.
a it Ho deciso di mantenere il vecchio endpoint.
u pt Usamos PostgreSQL em vez de SQLite, porque várias pessoas escrevem ao mesmo tempo.
u pt POST deve responder 201.
u pt Vamos ficar com o Flask.
a pt Escolhi SQLite em vez de PostgreSQL porque não precisa de servidor.
a pt Decidi manter o endpoint antigo.
u nl We gebruiken PostgreSQL in plaats van SQLite, omdat meerdere mensen tegelijk schrijven.
u nl POST moet 201 teruggeven.
u nl We blijven bij Flask.
a nl Ik heb voor SQLite gekozen in plaats van PostgreSQL omdat het geen server nodig heeft.
a nl Ik heb besloten het oude endpoint te behouden.
u pl Używamy PostgreSQL zamiast SQLite, ponieważ kilka osób pisze jednocześnie.
u pl POST powinien zwracać 201.
u pl Zostajemy przy Flasku.
a pl Wybrałem SQLite zamiast PostgreSQL, bo nie wymaga serwera.
a pl Zdecydowałem się zachować stary endpoint.
u ru Мы используем PostgreSQL вместо SQLite, потому что пишут сразу несколько человек.
u ru POST должен отвечать 201.
u ru Остаёмся на Flask.
a ru Я выбрал SQLite вместо PostgreSQL, потому что ему не нужен сервер.
a ru Я решил оставить старый эндпоинт.
u zh 我们用 PostgreSQL 而不是 SQLite，因为有多人同时写入。
u zh POST 应该返回 201。
u zh 我们决定继续使用 Flask。
a zh 我选择了 SQLite 而不是 PostgreSQL，因为它不需要服务器。
a zh 我决定保留旧接口。
u ja SQLite ではなく PostgreSQL を使います。複数人が同時に書き込むからです。
u ja POST は 201 を返すべきです。
u ja Flask のままにします。
a ja サーバーが不要なので、PostgreSQL ではなく SQLite を選びました。
a ja 古いエンドポイントは残すことにしました。
"""

NEAR_MISSES = """\
u en Add a DELETE route.
u en It would be nice if the page were always up to date.
u en Should we use Redis instead of memcached?
u en The test never finishes on my machine.
u en It must be a caching problem.
u en I always forget the password.
u en Don't worry about the tests.
u en Never mind.
u en This should fix it.
u en My colleague said "never use globals".
u en If we used Redis instead, it would be faster.
u en Maybe we should switch to PostgreSQL.
u en The server always returns 500.
u en You must have missed the second file.
u en Don't change that yet.
u en Why do we never see the error?
u en Only the last test fails.
u en Rename Store to TodoStore and update the tests.
u en There must be a better way.
u en I would prefer a smaller image, but I am not sure.
u en The docs say that you must call close().
u en It should work now.
u en I wish the build never broke.
u en Now run the tests instead.
u en We always get a timeout in CI.
u en Explain why the list is used instead of a set.
u en Do not do that now, first show me the plan.
u en Fix the bug where the title must be entered twice.
u en What would you use instead of Flask?
u en The button should be visible by now, but it is not.
a en I used sed to rename the class.
a en Let me check whether the tests pass first.
a en The server must be restarted for the change to take effect.
a en You should always keep a backup.
a en I will use the existing helper.
a en We could use a queue instead of a list.
a en I created app.py and added the routes.
a en Done, all tests pass because the fixture was fixed.
a en The function never returns None here.
a en If you prefer, I can use PostgreSQL instead.
a en I considered Redis instead of memcached.
u de Füge eine DELETE-Route hinzu.
u de Es wäre schön, wenn die Seite immer aktuell wäre.
u de Sollen wir Redis statt memcached nehmen?
u de Der Test wird nie fertig.
u de Das muss ein Cache-Problem sein.
u de Ich vergesse immer das Passwort.
u de Mach dir keine Sorgen um die Tests.
u de Das sollte jetzt funktionieren.
u de Vielleicht nehmen wir besser PostgreSQL statt SQLite.
a de Ich habe die Routen ergänzt und die Tests laufen lassen.
a de Der Server muss neu gestartet werden.
a de Man könnte auch Redis statt memcached nehmen.
u fr Ajoute une route DELETE.
u fr Ce serait bien que la page soit toujours à jour.
u fr Le test ne se termine jamais.
u fr Faut-il utiliser Redis au lieu de memcached ?
u fr Ça doit être un problème de cache.
a fr J'ai ajouté la route et lancé les tests.
a fr On pourrait utiliser Redis au lieu de memcached.
u es Añade una ruta DELETE.
u es Sería bueno que la página siempre estuviera al día.
u es La prueba nunca termina.
u es ¿Deberíamos usar Redis en lugar de memcached?
u es Debe ser un problema de caché.
a es He añadido la ruta y ejecutado las pruebas.
u it Aggiungi una rotta DELETE.
u it Il test non finisce mai.
u it Sarebbe bello avere la pagina sempre aggiornata.
u it Deve essere un problema di cache.
u pt Adicione uma rota DELETE.
u pt O teste nunca termina.
u pt Seria bom se a página estivesse sempre atualizada.
u nl Voeg een DELETE-route toe.
u nl De test wordt nooit klaar.
u nl Het moet een cacheprobleem zijn.
u nl Misschien kunnen we Redis gebruiken in plaats van memcached.
u pl Dodaj trasę DELETE.
u pl Test nigdy się nie kończy.
u pl To musi być problem z cache.
u pl Może lepiej użyć Redisa zamiast memcached.
u ru Добавь маршрут DELETE.
u ru Тест никогда не заканчивается.
u ru Это должно быть из-за кэша.
u ru Может, лучше взять Redis вместо memcached?
u zh 添加一个 DELETE 路由。
u zh 测试一直跑不完。
u zh 这应该是缓存的问题。
u zh 要不要用 Redis 代替 memcached？
u zh 如果页面总是最新的就好了。
u ja DELETE ルートを追加してください。
u ja テストがいつも終わりません。
u ja キャッシュの問題に違いない。
u ja memcached ではなく Redis を使うべきでしょうか？
u ja ページが常に最新だといいのですが。
a ja ルートを追加し、テストを実行しました。
"""

LATER_RULES = """\
u en One more thing: the migrations folder is off limits, never edit anything in it.
u en Always ask me before deleting a file.
u en Every commit must pass the linter.
u en Don't use print for logging, use structlog.
u en Only I may merge to the release branch.
u en You should never hardcode credentials.
u en Under no circumstances should you run the deploy script.
u en Avoid global state.
u en Make sure to run the linter after each change.
u en Keep functions short and never nest more than three levels.
u en In future, put new tests next to the code they cover.
u de Bevor du etwas löschst, frag mich immer.
u de Verwende nie Wildcard-Importe.
u de Die Datei config.yml darf nicht verändert werden.
u de Jede Funktion braucht einen Test.
u de Schreib in Zukunft kürzere Commit-Nachrichten.
u de Du sollst niemals selbst pushen.
u fr N'utilise jamais de variables globales.
u fr Chaque fonction doit avoir un test.
u fr Dorénavant, demande-moi avant de supprimer un fichier.
u es Nunca borres archivos sin preguntar.
u es Cada función debe tener una prueba.
u it Non modificare mai i file in vendor.
u it Ogni funzione deve avere un test.
u pt Nunca apague arquivos sem perguntar.
u pt Cada função deve ter um teste.
u nl Verwijder nooit bestanden zonder te vragen.
u nl Elke functie moet een test hebben.
u pl Nigdy nie usuwaj plików bez pytania.
u pl Każda funkcja musi mieć test.
u ru Никогда не удаляй файлы без спроса.
u ru У каждой функции должен быть тест.
u zh 删除文件之前必须先问我。
u zh 以后不要直接推送到 main。
u ja 勝手にファイルを削除しないでください。
u ja 関数には必ずテストを書いてください。
"""

LATER_DECISIONS = """\
u en Okay, we're going with Postgres then.
u en The timeout should be 30 seconds.
u en Call the package tinyweb, not webtiny.
u en Use the existing logger rather than a new one.
u en We decided to support only Linux.
u en Dates should always be shown in UTC.
u en Let's not cache anything for now.
u en Names are to be sorted without regard to case.
a en I opted for a queue since the callers must not wait.
a en I've decided against a database: a file is enough.
a en The loader now streams the file rather than reading it whole.
a en I went with `msgspec` over `pydantic` because it starts faster.
u de Der Timeout soll 30 Sekunden sein.
u de Okay, dann nehmen wir Postgres.
u de Benutze den vorhandenen Logger statt eines neuen.
a de Ich habe mich gegen eine Datenbank entschieden, weil eine Datei reicht.
a de Der Lader liest die Datei jetzt stückweise statt ganz.
u fr Le délai doit être de 30 secondes.
u fr On part sur Postgres.
a fr J'ai opté pour une file parce que les appelants ne doivent pas attendre.
u es El tiempo límite debe ser de 30 segundos.
a es Opté por una cola porque los clientes no deben esperar.
u it Usiamo il logger esistente invece di uno nuovo.
a it Ho optato per una coda perché i chiamanti non devono attendere.
u pt Vamos usar o Postgres.
a pt Optei por uma fila porque os clientes não devem esperar.
u nl De time-out moet 30 seconden zijn.
a nl Ik heb besloten geen database te gebruiken.
u pl Limit czasu powinien wynosić 30 sekund.
a pl Postanowiłem użyć kolejki, ponieważ klienci nie mogą czekać.
u ru Таймаут должен быть 30 секунд.
a ru Я решил не использовать базу данных, потому что хватает файла.
u zh 超时时间应该是 30 秒。
a zh 我决定不用数据库，因为文件就够了。
u ja タイムアウトは 30 秒にします。
a ja 呼び出し側を待たせないため、キューを採用しました。
"""

LATER_NEAR_MISSES = """\
u en Use the attached screenshot as a reference.
u en Keep going.
u en Don't stop until the tests are green.
u en I never understood why this file exists.
u en The import always breaks after an update, please look into it.
u en We need a login page.
u en Can you make sure every endpoint returns JSON?
u en Only two tests are red now.
u en You must be kidding.
u en Every time I save, the watcher crashes.
u en All tests must have been green before.
u en Let's see what happens.
u en Let's keep it in mind.
u en Use your judgement.
u en Let's use the debugger to find out where it hangs.
u en The list should contain three entries but it is empty.
u en The function should return 5 but returns 6.
u en That must never have worked.
u en We use Flask here, don't we?
u en Remove the line `Never edit this file` from the header.
u en Write a function that always returns true.
u en Change the button so that it is blue instead of red.
u en Translate this: Never give up.
u en Nobody must know how it works to use it.
u en I'd rather have the list on the left.
u en Please run the tests again instead of guessing.
a en I kept the tests green.
a en You must not forget to set the variable.
a en The tests are now faster because of the cache.
a en I used grep instead of rg because rg is not installed.
a en I decided to look at the tests first.
a en It is now sorted by date as requested.
u de Die Seite lädt immer noch nicht.
u de Der Test muss doch irgendwann fertig werden.
u de Mach weiter.
u de Die Liste soll drei Einträge haben, ist aber leer.
u de Ab und zu bricht der Test ab.
u de Wir nehmen jetzt mal an, dass es geht.
u de Das darf doch nicht wahr sein.
a de Ich habe die Tests jetzt ausgeführt.
u fr Ça ne marche toujours pas.
u fr Il doit y avoir une erreur quelque part.
u fr Continue.
u fr La page n'est jamais à jour.
a fr J'ai lancé les tests parce que le code a changé.
u es Sigue fallando siempre.
u es Debe de haber un error en la consulta.
u es No funciona nunca.
u it Non funziona mai.
u it Ci deve essere un errore da qualche parte.
u pt Não funciona nunca.
u pt Deve haver um erro na consulta.
u nl Er moet ergens een fout zitten.
u nl Het werkt nog altijd niet.
u pl Nigdy nie działa.
u pl Gdzieś musi być błąd.
u ru Это никогда не работает.
u ru Где-то должна быть ошибка.
u zh 它从来没有成功过。
u zh 一定是哪里出错了。
u ja いつも失敗します。
u ja どこかに間違いがあるはずです。
"""
